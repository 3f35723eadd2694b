internal import CallBasics

/// Cuts a stream of bytes into messages and keep-alives; however the bytes come in pieces, the same comes out.
///
///     CRLF CRLF | start line ... CRLF CRLF body | CRLF | start line ...
///       ping             message                  pong
///
/// Use: `append` what came, then `next` until it is nil. A failure ends the stream: answer it if it has a message that
/// can be answered, then close.
/// Source: RFC 3261, section 18.3; RFC 5626, section 3.5.1 and 4.4.1
package struct StreamFramer: Sendable {
    /// What the stream holds next.
    package enum Element: Sendable {
        case message(SIPMessage)
        /// One line end between messages: the answer to a ping, if one was sent; else it says nothing.
        case pong
        /// A second line end behind the first: to be answered with one.
        case ping
        /// Where the next message begins cannot be known any more; the message is for the answer, if its head was read.
        case failure(SIPError, SIPMessage?)
    }

    private enum State: Sendable {
        /// Between messages; whether a line end came that no other made a ping of.
        case between(afterLineEnd: Bool)
        case head
        case body(SIPMessage, byteCount: Int)
        case closed
    }

    private var buffer: [UInt8] = []
    /// What was taken off the front; it is given back when it is half of the buffer.
    private var start = 0
    /// Up to where an empty line was looked for.
    private var scanned = 0
    /// Whether the line at `scanned` has no byte yet but a CR.
    private var isLineEmpty = false
    private var state = State.between(afterLineEnd: false)

    package init() {}

    /// How many bytes wait for more; never more than a message may have when `next` was called until it was nil.
    package var waitingByteCount: Int { buffer.count - start }
    /// Whether a failure ended the stream.
    package var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Takes what came; after a failure it is dropped.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        guard !isClosed else { return }
        buffer += bytes
    }

    /// The next message, keep-alive or failure; nil when more bytes are needed.
    package mutating func next() -> Element? {
        defer { giveBack() }
        while true {
            switch state {
            case .closed: return nil
            case .between(let afterLineEnd):
                guard start < buffer.count else { return nil }
                switch buffer[start] {
                case .lineFeed: take(1)
                case .carriageReturn:
                    guard start + 1 < buffer.count else { return nil }
                    guard buffer[start + 1] == .lineFeed else {
                        return close(SIPError(.notAMessage, "A CR stands alone between messages."), nil)
                    }
                    take(2)
                    state = .between(afterLineEnd: !afterLineEnd)
                    return afterLineEnd ? .ping : .pong
                case let first:
                    // A hello of TLS, for one, would keep its connection waiting for the end of a line.
                    guard first.isToken else {
                        return close(SIPError(.notAMessage, "No message begins with a byte of \(first)."), nil)
                    }
                    state = .head
                    (scanned, isLineEmpty) = (start, false)
                }
            case .head:
                guard let end = findHeadEnd() else {
                    guard waitingByteCount > MessageLimits.byteCount else { return nil }
                    return close(SIPMessage.tooLarge(waitingByteCount), nil)
                }
                guard end - start <= MessageLimits.byteCount else {
                    return close(SIPMessage.tooLarge(end - start), nil)
                }
                if let failure = readHead(Array(buffer[start..<end])) { return failure }
            case .body(var message, let byteCount):
                guard waitingByteCount >= byteCount else { return nil }
                message.appendBody(buffer[start..<(start + byteCount)])
                take(byteCount)
                state = .between(afterLineEnd: false)
                return .message(message)
            }
        }
    }

    private mutating func readHead(_ head: [UInt8]) -> Element? {
        var message: SIPMessage
        do { message = try SIPMessage(head: head) } catch { return close(error, nil) }
        let length = message.readContentLength()
        if length == nil, message.count(of: .contentLength) > 0 || message.count(of: .contentType) > 0 {
            let missing = SIPError(.badRequest, "Content-Length is missing, which a stream needs. Send it.")
            message.setDefect(missing)
            return close(message.defect ?? missing, message)
        }
        let byteCount = length ?? 0
        guard byteCount <= MessageLimits.byteCount - head.count else {
            let (sum, isOver) = byteCount.addingReportingOverflow(head.count)
            return close(SIPMessage.tooLarge(isOver ? byteCount : sum), message)
        }
        take(head.count)
        state = .body(message, byteCount: byteCount)
        return nil
    }

    /// The index behind the empty line that ends the head; each byte is looked at once.
    private mutating func findHeadEnd() -> Int? {
        while scanned < buffer.count {
            let byte = buffer[scanned]
            scanned += 1
            if byte == .lineFeed {
                if isLineEmpty { return scanned }
                isLineEmpty = true
            } else if byte != .carriageReturn || scanned >= 2 && buffer[scanned - 2] == .carriageReturn {
                isLineEmpty = false
            }
        }
        return nil
    }

    private mutating func close(_ error: SIPError, _ message: SIPMessage?) -> Element {
        state = .closed
        (buffer, start) = ([], 0)
        return .failure(error, message)
    }

    private mutating func take(_ count: Int) { start += count }

    private mutating func giveBack() {
        guard start > 0, start * 2 >= buffer.count else { return }
        buffer.removeFirst(start)
        scanned = max(scanned - start, 0)
        start = 0
    }
}
