import NIOCore

/// Bytes that go with a message and through no encoder.
///
/// Small ones travel in the stream; large ones, and those made as sealed memory, are passed as memory and not copied.
public struct Blob: Sendable {
    enum Storage: Sendable {
        case buffer(ByteBuffer)
        case sealed(SealedMemory)
    }

    let storage: Storage

    /// A blob with a copy of `bytes`.
    public init(_ bytes: some Sequence<UInt8>) {
        storage = .buffer(ByteBuffer(bytes: bytes))
    }

    /// A blob that is sealed memory already: however often it is sent, nothing is copied.
    public init(_ memory: SealedMemory) {
        storage = .sealed(memory)
    }

    init(_ buffer: ByteBuffer) {
        storage = .buffer(buffer)
    }

    /// How many bytes there are.
    public var count: Int {
        switch storage {
        case .buffer(let buffer): buffer.readableBytes
        case .sealed(let memory): memory.count
        }
    }

    /// Calls `body` with the bytes.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        switch storage {
        case .buffer(let buffer): try buffer.withUnsafeReadableBytes(body)
        case .sealed(let memory): try memory.withUnsafeBytes(body)
        }
    }

    /// The bytes as sealed memory; copied once when they are not yet.
    func sealed() throws -> SealedMemory {
        switch storage {
        case .sealed(let memory): return memory
        case .buffer(let buffer):
            return try SealedMemory(count: buffer.readableBytes) { target in
                buffer.withUnsafeReadableBytes { target.copyMemory(from: $0) }
            }
        }
    }
}
