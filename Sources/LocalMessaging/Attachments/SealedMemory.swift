import CLinux
import Glibc

/// Memory behind a descriptor that nobody can change or cut any more (memfd_create(2), fcntl(2) "File Sealing").
///
/// Passing it to another process copies nothing; any number of processes may read it at once.
public final class SealedMemory: @unchecked Sendable {
    /// How many bytes there are.
    public let count: Int
    let file: OpenFile
    private let start: UnsafeRawPointer?

    /// Memory of `count` bytes, zero at first, which `fill` writes before it is sealed.
    ///
    /// - Throws: `MessagingError.attachments` when the system has no memory or no descriptor.
    public convenience init(
        count: Int,
        filledBy fill: (UnsafeMutableRawBufferPointer) throws -> Void
    ) throws {
        let descriptor = linux_memory_descriptor("local-messaging")
        guard descriptor >= 0 else { throw Self.failure("No memory descriptor", -descriptor) }
        let file = OpenFile(owning: descriptor)
        guard ftruncate(descriptor, count) == 0 else { throw Self.failure("No memory of \(count) bytes", errno) }
        if count > 0 {
            guard let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), start != MAP_FAILED
            else { throw Self.failure("Mapping \(count) bytes failed", errno) }
            defer { munmap(start, count) }
            try fill(UnsafeMutableRawBufferPointer(start: start, count: count))
        }
        let code = linux_seal(descriptor)
        guard code == 0 else { throw Self.failure("Sealing failed", -code) }
        try self.init(mapping: file, maximumByteCount: count)
    }

    /// Maps memory that came from another process.
    ///
    /// - Throws: `MessagingError.attachments` when it is not sealed memory, or larger than `maximumByteCount`.
    init(mapping file: OpenFile, maximumByteCount: Int) throws(MessagingError) {
        // Before its size is asked for: what is not sealed yet may still be cut, and a read beyond its end would trap.
        guard linux_is_sealed(file.descriptor) == 1 else {
            throw .attachments("a blob whose memory is not sealed.")
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw Self.failure("A blob's descriptor is no file", errno) }
        let count = Int(status.st_size)
        guard count <= maximumByteCount else {
            throw .attachments("a blob of \(count) bytes; \(maximumByteCount) are accepted.")
        }
        self.file = file
        self.count = count
        guard count > 0 else {
            start = nil
            return
        }
        guard let start = mmap(nil, count, PROT_READ, MAP_SHARED, file.descriptor, 0), start != MAP_FAILED else {
            throw Self.failure("Mapping \(count) bytes failed", errno)
        }
        self.start = UnsafeRawPointer(start)
    }

    private static func failure(_ what: String, _ code: CInt) -> MessagingError {
        .attachments("\(what): \(String(cString: strerror(code))).")
    }

    /// Calls `body` with the bytes.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: count))
    }

    deinit {
        if let start { munmap(UnsafeMutableRawPointer(mutating: start), count) }
    }
}
