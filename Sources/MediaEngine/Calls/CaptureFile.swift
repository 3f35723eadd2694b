import Synchronization

/// A pcap file that takes what the media thread taps.
final class CaptureFile: WaitingService {
    let tap: PacketTap
    private let path: String
    private let writer: Mutex<PcapWriter?>
    private let pipe: PipeEnd?
    private let failure = Mutex<PcapError?>(nil)
    private let listener = LossListener<PcapError>()

    init(path: String, unixNanosecondsAtZero: Int64, tap: PacketTap = PacketTap()) throws(PcapError) {
        self.path = path
        self.tap = tap
        let writer = try PcapWriter(path: path, unixNanosecondsAtZero: unixNanosecondsAtZero)
        pipe = writer.pipe
        self.writer = Mutex(writer)
    }

    /// Whether it is a pipe, whose reader is waited for.
    var waitsForOthers: Bool { pipe != nil }

    /// Tells `handler` as soon as packets are lost, once for each reason.
    ///
    /// Thread: `handler` runs where the file is served.
    func whenFailing(_ handler: @escaping @Sendable (PcapError) -> Void) {
        listener.set(handler)
    }

    func serve() {
        let isOpen = writer.withLock { writer in
            if let writer { drain(into: writer) }
            return writer != nil
        }
        if isOpen { listener.tell(failure.withLock { $0 }, gap: tap.droppedCount > 0 ? incomplete : nil) }
    }

    /// Waits no longer than need be for the reader of a pipe: the file is to be closed.
    func hurry() { pipe?.hurry() }

    /// Writes what waits and closes the file.
    ///
    /// - Throws: `PcapError` when some packets could not be written.
    func close() throws(PcapError) {
        hurry()
        let isComplete = try writer.withLock { writer throws(PcapError) in
            guard let open = writer.take() else { return true }
            drain(into: open)
            try open.close()
            return tap.droppedCount == 0
        }
        if let error = failure.withLock({ $0 }) { throw error }
        if !isComplete { throw incomplete }
    }

    private func drain(into writer: PcapWriter) {
        guard failure.withLock({ $0 }) == nil else { return }
        do throws(PcapError) {
            try tap.drain(into: writer)
        } catch {
            failure.withLock { $0 = error }
        }
    }

    private var incomplete: PcapError {
        PcapError(
            .incomplete,
            "\(path) lacks \(tap.droppedCount) packets: its disk or reader was too far behind. Write to a faster one."
        )
    }
}
