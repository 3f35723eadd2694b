package import CallBasics
import Glibc

/// Writes datagrams to a capture file that Wireshark and tcpdump open.
///
/// Shape: classic pcap, microseconds, link type raw IP; IP and UDP headers are made up from the addresses.
/// Thread: one at a time, never the media thread, which hands its packets to a `PacketTap`.
package final class PcapWriter {
    /// The file's path.
    package let path: String
    /// Datagrams written.
    package private(set) var recordCount = 0
    /// Datagrams left out because no UDP datagram can be so long.
    package private(set) var oversizeCount = 0

    /// What is waited for when it is a pipe or a terminal.
    let pipe: PipeEnd?

    private let unixNanosecondsAtZero: Int64
    private var descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 1 << 17)
    private var bufferedCount = 0

    /// Creates or empties the file at `path`.
    ///
    /// - Parameters:
    ///   - path: where the file goes.
    ///   - unixNanosecondsAtZero: nanoseconds since 1970 at `MediaTime.zero`.
    /// - Throws: `system` when the file cannot be written.
    package init(path: String, unixNanosecondsAtZero: Int64) throws(PcapError) {
        self.path = path
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Self.systemError("opened for writing", path) }
        pipe = PipeEnd(descriptor)
        bufferedCount = buffer.withUnsafeMutableBufferPointer { buffer in
            var target = buffer.mutableSpan
            return PcapRecord.serializeFileHeader(into: &target)
        }
        try flush()
    }

    deinit {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Adds a datagram that travelled at `time`.
    ///
    /// Throws: `system` when the disk is full or the file gone.
    package func write(
        _ bytes: Span<UInt8>,
        from source: SocketAddress,
        to destination: SocketAddress,
        at time: MediaTime
    ) throws(PcapError) {
        guard bytes.count <= PcapRecord.maximumPayloadByteCount else {
            oversizeCount += 1
            return
        }
        if buffer.count - bufferedCount < bytes.count + PcapRecord.maximumOverhead { try flush() }
        let unixNanoseconds = unixNanosecondsAtZero &+ time.nanoseconds
        bufferedCount += buffer.withUnsafeMutableBufferPointer { buffer in
            var target = UnsafeMutableBufferPointer(rebasing: buffer[bufferedCount...]).mutableSpan
            return PcapRecord.serialize(
                bytes,
                from: source,
                to: destination,
                unixNanoseconds: unixNanoseconds,
                into: &target
            )
        }
        recordCount += 1
    }

    /// Brings what is buffered to the file, which is then whole.
    ///
    /// Throws: `system` when the disk is full or the file gone.
    package func flush() throws(PcapError) {
        guard descriptor >= 0 else { return }
        // What failed is not written a second time: the first of it may have got there.
        defer { bufferedCount = 0 }
        let failure = buffer.withUnsafeBytes { bytes -> PipeEnd.Failure? in
            let waiting = UnsafeRawBufferPointer(rebasing: bytes[..<bufferedCount])
            do throws(PipeEnd.Failure) { try PipeEnd.write(waiting, to: descriptor, pipe) } catch { return error }
            return nil
        }
        if let failure { throw PcapError(.system, failure.message(path)) }
    }

    /// Brings what is buffered to the file and closes it; nothing can be written any more.
    ///
    /// Throws: `system` when the disk is full or the file gone.
    package func close() throws(PcapError) {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        do throws(PcapError) { try flush() } catch {
            _ = Glibc.close(descriptor)
            throw error
        }
        guard Glibc.close(descriptor) == 0 else { throw Self.systemError("closed", path) }
    }

    private static func systemError(_ action: String, _ path: String) -> PcapError {
        let reason = String(cString: strerror(errno))
        return PcapError(
            .system,
            "\(path) could not be \(action): \(reason). Choose a place that can be written and has room."
        )
    }
}
