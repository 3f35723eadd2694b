import Synchronization

/// A pcap file that takes what the media thread taps.
final class CaptureFile: BackgroundService {
    let tap = PacketTap()
    private let writer: Mutex<PcapWriter?>
    private let failure = Mutex<PcapError?>(nil)

    init(path: String, unixNanosecondsAtZero: Int64) throws(PcapError) {
        writer = Mutex(try PcapWriter(path: path, unixNanosecondsAtZero: unixNanosecondsAtZero))
    }

    func serve() {
        writer.withLock { writer in
            guard let open = writer, failure.withLock({ $0 }) == nil else { return }
            do throws(PcapError) {
                try tap.drain(into: open)
            } catch {
                failure.withLock { $0 = error }
            }
        }
    }

    /// Writes what waits and closes the file.
    func close() throws(PcapError) {
        serve()
        try writer.withLock { writer throws(PcapError) in
            guard let open = writer.take() else { return }
            try open.close()
        }
        if let error = failure.withLock({ $0 }) { throw error }
    }
}
