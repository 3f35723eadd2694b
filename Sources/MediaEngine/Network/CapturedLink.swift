package import CallBasics

/// Datagrams of a capture, delivered at their capture times in the place of a network; what is sent goes nowhere.
///
/// Times that run backwards count as the time before. Pauses longer than an hour are cut to what the sender's own clock says of
/// them, else to a minute, so that a damaged time does not stop a replay for years. Memory is that of the datagrams.
/// Thread: made on the control side, then media; nothing allocates after `init`.
package final class CapturedLink: DatagramLink, @unchecked Sendable {
    private struct Entry: BitwiseCopyable {
        var due: MediaTime
        var offset: Int
        var byteCount: Int
        var source: SocketAddress
    }

    /// When the last datagram is delivered.
    package let end: MediaTime
    /// Pauses that were cut.
    package let cutPauseCount: Int
    /// When the datagrams behind those that were cut to a minute are delivered.
    package let cutEnds: [MediaTime]
    /// Times that ran backwards.
    package let backwardCount: Int

    private let bytes: UnsafeMutableBufferPointer<UInt8>
    private let entries: UnsafeMutableBufferPointer<Entry>
    private var next = 0

    /// The longest pause between two datagrams.
    package static let longestPause = Duration.seconds(3600)
    /// What a longer one becomes where nothing says better.
    package static let cutPause = Duration.seconds(60)

    /// A link that delivers datagrams of a capture.
    ///
    /// - Parameters:
    ///   - datagrams: Them, in their order.
    ///   - start: When the first one is delivered.
    ///   - step: The time from one to the next by their sender's clock, where it is known.
    package init(
        _ datagrams: [CapturedDatagram],
        from start: MediaTime,
        step: (CapturedDatagram, CapturedDatagram) -> Duration? = { _, _ in nil }
    ) {
        bytes = .allocate(capacity: max(datagrams.reduce(0) { $0 + $1.payload.count }, 1))
        entries = .allocate(capacity: max(datagrams.count, 1))
        var (offset, due, cut, backward) = (0, start, 0, 0)
        var cuts: [MediaTime] = []
        for (index, datagram) in datagrams.enumerated() {
            if index > 0 {
                let before = datagrams[index - 1]
                let (pause, overflow) = datagram.unixNanoseconds.subtractingReportingOverflow(before.unixNanoseconds)
                if overflow || pause > Self.longestPause.nanoseconds {
                    let told = step(before, datagram).flatMap { Duration.zero...Self.longestPause ~= $0 ? $0 : nil }
                    due += told ?? Self.cutPause
                    cut += 1
                    if told == nil { cuts.append(due) }
                } else if pause < 0 {
                    backward += 1
                } else {
                    due += .nanoseconds(pause)
                }
            }
            for (place, byte) in datagram.payload.enumerated() { bytes[offset + place] = byte }
            let entry = Entry(due: due, offset: offset, byteCount: datagram.payload.count, source: datagram.source)
            entries.initializeElement(at: index, to: entry)
            offset += datagram.payload.count
        }
        count = datagrams.count
        end = due
        cutPauseCount = cut
        cutEnds = cuts
        backwardCount = backward
    }

    deinit {
        bytes.deallocate()
        entries.deallocate()
    }

    private let count: Int

    /// Whether every datagram has been delivered.
    package var isFinished: Bool { next >= count }

    /// Takes `bytes` and forgets them.
    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool { true }

    /// The next datagram whose time has come.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        guard next < count, entries[next].due <= now else { return nil }
        let entry = entries[next]
        next &+= 1
        for index in 0..<min(entry.byteCount, buffer.count) { buffer[index] = bytes[entry.offset &+ index] }
        return ReceivedDatagram(byteCount: entry.byteCount, source: entry.source, arrival: entry.due)
    }
}
