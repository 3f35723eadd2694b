internal import CallBasics
import Foundation
import NIOCore
import SharedCore

/// The lines of the mailbox's protocol: JSON objects over TCP, one on each line.
///
///     client                               server
///     {"fetch":true}            ───────►
///                               ◄───────   {"callID":"1","from":"sip:a@b","text":"…"}      what is due, not acknowledged
///                               ◄───────   {"room":"sip:r@b","from":"sip:a@b"}             and not yet on this connection
///                               ◄───────   {"pending":1}                                   the end; so many fall due later
///     {"acknowledge":"1"}       ───────►                                                   no answer; it is gone
///     {"listen":true}           ───────►
///                               ◄───────   {"callID":"2",…}                                whenever one falls due
///     {"action":{"id":"7",…}}   ───────►
///                               ◄───────   {"performed":"7"}                               also when it was before
///     anything else             ───────►
///                               ◄───────   {"error":"…"}                                   and the connection ends
///
/// The server takes requests in their order: an answer to a later one says that the earlier ones were taken.
enum MailboxLine {
    /// The longest line, without its end.
    static var mostBytes: Int { 65_536 }

    static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        guard let line = try? encoder.encode(value) else {
            preconditionFailure("A line holds strings and numbers only.")
        }
        return [UInt8](line)
    }

    /// Reads the value of one line.
    ///
    /// - Throws: `MailboxError` with code `protocolViolation`.
    static func decode<Value: Decodable>(_ type: Value.Type, from line: ByteBuffer) throws(MailboxError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(line.readableBytesView))
        } catch {
            let message = "A line of \(line.readableBytes) bytes is not of the mailbox's protocol. Check the port."
            throw MailboxError(.protocolViolation, message)
        }
    }
}

/// What a client asks.
enum MailboxRequest: Hashable {
    /// Send what is due.
    case fetch
    /// Send what falls due from now on, or cease to.
    case listen(Bool)
    /// This is safe with me and may go.
    case acknowledge(String)
    /// Perform this.
    case action(MessageAction)
}

extension MailboxRequest {
    /// The bytes of the line, without its end.
    ///
    /// - Throws: `MailboxError` with code `protocolViolation` when it is too long.
    func line() throws(MailboxError) -> [UInt8] {
        let line = MailboxLine.encode(self)
        guard line.count <= MailboxLine.mostBytes else {
            let message = "A request of \(line.count) bytes is too long. A line may have \(MailboxLine.mostBytes)."
            throw MailboxError(.protocolViolation, message)
        }
        return line
    }
}

/// What a server sends.
enum MailboxResponse: Hashable {
    /// Something held.
    case post(MailboxContent)
    /// The end of what was fetched, and how many fall due later.
    case pending(Int)
    /// The action with this identifier was performed.
    case performed(String)
    /// The connection ends, because of this.
    case error(String)

    /// The bytes of the line, without its end.
    var line: [UInt8] { MailboxLine.encode(self) }
}

extension MailboxRequest: Codable {
    private enum CodingKeys: CodingKey {
        case fetch, listen, acknowledge, action
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        if let listens = try members.decodeIfPresent(Bool.self, forKey: .listen) {
            self = .listen(listens)
        } else if let key = try members.decodeIfPresent(String.self, forKey: .acknowledge) {
            self = .acknowledge(key)
        } else if let action = try members.decodeIfPresent(MessageAction.self, forKey: .action) {
            self = .action(action)
        } else if try members.decode(Bool.self, forKey: .fetch) {
            self = .fetch
        } else {
            throw DecodingError.dataCorruptedError(forKey: .fetch, in: members, debugDescription: "fetch is false")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .fetch: try members.encode(true, forKey: .fetch)
        case .listen(let listens): try members.encode(listens, forKey: .listen)
        case .acknowledge(let key): try members.encode(key, forKey: .acknowledge)
        case .action(let action): try members.encode(action, forKey: .action)
        }
    }
}

extension MailboxResponse: Codable {
    private enum CodingKeys: CodingKey {
        case pending, performed, error
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        if let count = try members.decodeIfPresent(Int.self, forKey: .pending) {
            self = .pending(count)
        } else if let identifier = try members.decodeIfPresent(String.self, forKey: .performed) {
            self = .performed(identifier)
        } else if let reason = try members.decodeIfPresent(String.self, forKey: .error) {
            self = .error(reason)
        } else {
            self = .post(try MailboxContent(from: decoder))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .post(let content): try content.encode(to: encoder)
        case .pending(let count): try members.encode(count, forKey: .pending)
        case .performed(let identifier): try members.encode(identifier, forKey: .performed)
        case .error(let reason): try members.encode(reason, forKey: .error)
        }
    }
}

/// Cuts a stream into lines, and ends it at one that is too long.
struct MailboxLineDecoder: NIOSingleStepByteToMessageDecoder {
    typealias InboundOut = ByteBuffer

    /// How many bytes of the buffer are known to hold no end of line, so that none is looked at twice.
    private var searched = 0

    mutating func decode(buffer: inout ByteBuffer) throws -> ByteBuffer? {
        let unsearched = buffer.readableBytesView.dropFirst(searched)
        guard let end = unsearched.firstIndex(of: UInt8(ascii: "\n")) else {
            searched = buffer.readableBytes
            guard searched <= MailboxLine.mostBytes else { throw Self.tooLong }
            return nil
        }
        searched = 0
        let byteCount = end - buffer.readerIndex
        guard byteCount <= MailboxLine.mostBytes, let line = buffer.readSlice(length: byteCount) else {
            throw Self.tooLong
        }
        buffer.moveReaderIndex(forwardBy: 1)
        return line
    }

    mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> ByteBuffer? {
        if let line = try decode(buffer: &buffer) { return line }
        // What has no end was cut; nobody knows what is missing.
        buffer.clear()
        return nil
    }

    private static var tooLong: MailboxError {
        MailboxError(.protocolViolation, "A line has more than \(MailboxLine.mostBytes) bytes. Send shorter ones.")
    }
}
