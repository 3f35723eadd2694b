import CallBasics
import Synchronization

/// A pcap file that takes what the media thread taps.
final class CaptureFile: WaitingService {
    let tap: PacketTap
    private let path: String
    private let output: Mutex<Output?>
    private let pipe: PipeEnd?
    private let failure = Mutex<PcapError?>(nil)
    private let listener = LossListener<PcapError>()
    private let now: @Sendable () -> MediaTime

    /// A file at `path` of what travels by the clock `now`, at whose zero so many nanoseconds had passed since 1970.
    init(
        path: String,
        unixNanosecondsAtZero: Int64,
        tap: PacketTap = PacketTap(),
        now: @escaping @Sendable () -> MediaTime
    ) throws(PcapError) {
        self.path = path
        self.tap = tap
        self.now = now
        let writer = try PcapWriter(path: path, unixNanosecondsAtZero: unixNanosecondsAtZero)
        pipe = writer.pipe
        output = Mutex(Output(writer: writer))
    }

    /// The open file, and what waits to be written in its order.
    private struct Output {
        let writer: PcapWriter
        var order = CaptureOrder()

        mutating func drain(_ tap: PacketTap, at now: MediaTime, all: Bool) throws(PcapError) {
            tap.drain(into: &order)
            let datagrams = order.take(at: now, all: all)
            for datagram in datagrams {
                try writer.write(
                    datagram.bytes.span,
                    from: datagram.source,
                    to: datagram.destination,
                    at: datagram.time
                )
            }
            if !datagrams.isEmpty { try writer.flush() }
        }
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
        let isOpen = output.withLock { output in
            drain(&output, all: false)
            return output != nil
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
        let isComplete = try output.withLock { output throws(PcapError) in
            guard output != nil else { return true }
            drain(&output, all: true)
            try output.take()?.writer.close()
            return tap.droppedCount == 0
        }
        if let error = failure.withLock({ $0 }) { throw error }
        if !isComplete { throw incomplete }
    }

    private func drain(_ output: inout Output?, all: Bool) {
        guard failure.withLock({ $0 }) == nil else { return }
        do throws(PcapError) {
            try output?.drain(tap, at: now(), all: all)
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
