import NIOCore

/// Cuts a stream of bytes into frames, however the bytes are split or joined on their way.
///
/// Holds at most one frame that is not complete, in memory for what of it has arrived. After an error the stream cannot
/// be read on: its connection ends.
struct FrameParser {
    /// What is wrong with a stream.
    enum Failure: Error, Hashable, CustomStringConvertible {
        case tooLarge(byteCount: Int, limit: Int)
        case version(UInt8)
        case malformed(String)

        var description: String {
            switch self {
            case .tooLarge(let byteCount, let limit): "a frame of \(byteCount) bytes; \(limit) are accepted."
            case .version(let version): "version \(version) of the protocol."
            case .malformed(let what): what
            }
        }
    }

    /// The largest `length` that is accepted.
    let maximumByteCount: Int
    /// What has arrived and was not given as a frame yet.
    private(set) var bytes = ByteBuffer()

    init(maximumByteCount: Int) {
        self.maximumByteCount = maximumByteCount
    }

    /// Takes what arrived; `next` gives the frames that are complete with it.
    mutating func append(_ arrived: ByteBuffer) {
        if bytes.readableBytes == 0 {
            bytes = arrived
        } else {
            bytes.writeImmutableBuffer(arrived)
        }
    }

    /// The next complete frame; its parts are views of the received bytes.
    mutating func next() throws(Failure) -> Frame? {
        guard let length = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self).map(Int.init) else {
            compact()
            return nil
        }
        guard length <= maximumByteCount else { throw .tooLarge(byteCount: length, limit: maximumByteCount) }
        // Whether a frame without a byte is followed by another one must not count: it may not be here yet.
        guard length > 0 else { throw .malformed("a frame of no bytes has no header.") }
        guard let version = bytes.getInteger(at: bytes.readerIndex + 4, as: UInt8.self) else {
            compact()
            return nil
        }
        guard version == Frame.version else { throw .version(version) }
        guard length >= Frame.headerByteCount else { throw .malformed("a frame of \(length) bytes has no header.") }
        guard bytes.readableBytes >= 4 + length else {
            compact()
            return nil
        }
        bytes.moveReaderIndex(forwardBy: 4)
        guard var content = bytes.readSlice(length: length) else { throw .malformed("a cut frame.") }
        return try Self.parse(&content)
    }

    private static func parse(_ content: inout ByteBuffer) throws(Failure) -> Frame {
        let header = content.withUnsafeReadableBytes { Header($0) }
        guard let kind = Frame.Kind(rawValue: header.kind) else { throw .malformed("a frame of kind \(header.kind).") }
        content.moveReaderIndex(forwardBy: Frame.headerByteCount)
        guard
            let name = content.readSlice(length: header.nameLength),
            let topic = content.readSlice(length: header.topicLength),
            let payload = content.readSlice(length: header.payloadLength)
        else { throw .malformed("a frame whose parts are longer than itself.") }
        guard header.nameLength <= 128 else { throw .malformed("a type's name of \(header.nameLength) bytes.") }
        guard
            let name = String(validating: name.readableBytesView, as: UTF8.self),
            let topic = String(validating: topic.readableBytesView, as: UTF8.self)
        else { throw .malformed("a name that is not UTF-8.") }
        var frame = Frame(kind, correlation: header.correlation, topic: topic, payload: payload)
        if header.nameLength > 0 { frame.type = MessageType(received: name, version: header.typeVersion) }
        frame.blob = content
        frame.fileCount = header.fileCount
        frame.hasSealedBlob = header.flags & 1 != 0
        guard !frame.hasSealedBlob || (frame.fileCount > 0 && content.readableBytes == 0) else {
            throw .malformed("a blob as memory without a descriptor.")
        }
        return frame
    }

    /// The numbers between a frame's length and its names.
    private struct Header {
        let kind: UInt8
        let nameLength: Int
        let fileCount: Int
        let correlation: UInt64
        let typeVersion: UInt16
        let topicLength: Int
        let flags: UInt8
        let payloadLength: Int

        /// Of a frame that has them all.
        init(_ bytes: UnsafeRawBufferPointer) {
            kind = bytes[1]
            nameLength = Int(bytes[2])
            fileCount = Int(bytes[3])
            correlation = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
            typeVersion = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt16.self))
            topicLength = Int(bytes[14])
            flags = bytes[15]
            payloadLength = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self)))
        }
    }

    /// Lets go of frames that were read: what is left is the beginning of one, and goes to memory of its own.
    private mutating func compact() {
        guard bytes.readerIndex > 0 else { return }
        bytes = ByteBuffer(bytes: bytes.readableBytesView)
    }
}
