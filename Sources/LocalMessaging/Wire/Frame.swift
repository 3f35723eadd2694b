import NIOCore

/// One frame of the stream between two processes.
///
///     octet 0        4         5      6             7        8                       16
///     | length       | version | kind | type length | files  | correlation           |
///     16             18             19      20               24
///     | type version | topic length | flags | payload length |
///     | type name | topic | payload (CBOR) | blob ...
///
/// Shape: numbers in network byte order; `length` counts what follows it, the blob takes what is left of it.
struct Frame: Sendable {
    /// What a frame is for.
    enum Kind: UInt8, Sendable {
        /// Client to server, the first frame: what it accepts.
        case hello = 1
        /// Server to client: it is accepted, and what the server accepts.
        case welcome
        /// Server to client: it is not accepted; the stream ends.
        case refusal
        case message
        case request
        case reply
        /// The message or request of that correlation failed.
        case failure
        /// The request of that correlation is not waited for any more.
        case cancel
        case subscribe
        case unsubscribe
        /// Server to client: connect for descriptors.
        case openAttachments
        /// Client to server: that connection is made.
        case attachmentsOpen
        /// Nothing comes after this one.
        case goodbye
    }

    static let version: UInt8 = 1
    /// From `version` to `payload length`.
    static let headerByteCount = 20

    let kind: Kind
    var correlation: UInt64 = 0
    var type: MessageType?
    var topic = ""
    var payload = ByteBuffer()
    var blob = ByteBuffer()
    /// Descriptors that come beside the frame, the blob's memory before the others.
    var fileCount = 0
    /// Whether the first descriptor is the blob.
    var hasSealedBlob = false

    init(
        _ kind: Kind,
        correlation: UInt64 = 0,
        type: MessageType? = nil,
        topic: String = "",
        payload: ByteBuffer = ByteBuffer()
    ) {
        self.kind = kind
        self.correlation = correlation
        self.type = type
        self.topic = topic
        self.payload = payload
    }

    /// What `length` will say.
    var length: Int {
        Self.headerByteCount + (type?.name.utf8.count ?? 0) + topic.utf8.count + payload.readableBytes
            + blob.readableBytes
    }

    /// Everything but the blob, which is written after it as it is.
    func serialized(with allocator: ByteBufferAllocator) -> ByteBuffer {
        let name = type?.name ?? ""
        var bytes = allocator.buffer(capacity: 4 + length - blob.readableBytes)
        bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 4 + Self.headerByteCount) { header in
            header.storeBytes(of: UInt32(length).bigEndian, as: UInt32.self)
            header[4] = Self.version
            header[5] = kind.rawValue
            header[6] = UInt8(name.utf8.count)
            header[7] = UInt8(fileCount)
            header.storeBytes(of: correlation.bigEndian, toByteOffset: 8, as: UInt64.self)
            header.storeBytes(of: (type?.version ?? 0).bigEndian, toByteOffset: 16, as: UInt16.self)
            header[18] = UInt8(topic.utf8.count)
            header[19] = hasSealedBlob ? 1 : 0
            header.storeBytes(of: UInt32(payload.readableBytes).bigEndian, toByteOffset: 20, as: UInt32.self)
            return 4 + Self.headerByteCount
        }
        bytes.writeString(name)
        bytes.writeString(topic)
        bytes.writeImmutableBuffer(payload)
        return bytes
    }
}
