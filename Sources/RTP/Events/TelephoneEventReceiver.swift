package import CallBasics

/// Turns telephone-event packets into key presses: one beginning and one end per press, whatever packets are lost,
/// repeated or out of order.
///
/// A press is known by its code and the time that it covers, not by single packets. So repeated ends, with or without
/// new sequence numbers, late updates, and senders that move the time stamp while the key is down make no second
/// press; and a press whose ends are all lost ends with the next one or after `timeout`.
/// Shape: remembers the press that goes on and eight that have ended.
/// Thread: media; no method allocates.
/// Source: RFC 4733, section 2.5.2
package struct TelephoneEventReceiver: ~Copyable, Sendable {
    /// The beginning or end of a press.
    package struct Report: Sendable, BitwiseCopyable, Equatable {
        /// What the report tells.
        package enum Kind: UInt8, Sendable, BitwiseCopyable {
            /// The key went down.
            case started
            /// The key went up, by the sender's word.
            case ended
            /// The key must have gone up: another press began, or packets stopped coming.
            case presumedEnded
        }

        /// What the report tells.
        package let kind: Kind
        /// The event's code, 0 to 16.
        package let code: UInt8
        /// The tone's power, in -dBm0.
        package let volume: UInt8
        /// How long the press has lasted so far, in units of the clock rate.
        package let duration: UInt32
        /// The time stamp of the press's beginning.
        package let timestamp: UInt32
        /// The clock rate of the payload type that told it, in Hz.
        package let clockRate: UInt32

        /// The duration in milliseconds.
        package var milliseconds: Double { clockRate > 0 ? Double(duration) * 1000 / Double(clockRate) : 0 }
    }

    /// How long no packet may come before a press is presumed to have ended.
    package let timeout: Duration

    private struct Press: BitwiseCopyable {
        var code: UInt8 = 0
        var volume: UInt8 = 0
        var clockRate: UInt32 = 0
        var start: UInt32 = 0
        /// Units before the present segment.
        var segmentOffset: Int64 = 0
        var segmentDuration: Int64 = 0
        var newest = SequenceNumber(0)
        var lastArrival = MediaTime.zero
        var isEndedBySender = false
        var isInUse = false

        init() {}

        init(_ packet: Arrival) {
            code = packet.event.code
            volume = packet.event.volume
            clockRate = packet.clockRate
            start = packet.timestamp
            segmentDuration = Int64(packet.event.duration)
            newest = packet.sequence
            lastArrival = packet.time
            isInUse = true
        }

        var total: Int64 { segmentOffset &+ segmentDuration }
        var segmentStart: UInt32 { start &+ UInt32(truncatingIfNeeded: segmentOffset) }
    }

    private struct Arrival: BitwiseCopyable {
        let event: TelephoneEvent
        let clockRate: UInt32
        let sequence: SequenceNumber
        let timestamp: UInt32
        let isMarked: Bool
        let time: MediaTime
    }

    private static let memory = 8
    private static let reportCapacity = 16
    /// Ended presses are remembered for so long; time stamps that come back later are new presses.
    private static let memorySpan = Duration.seconds(5)

    // First, so that what every tick asks lies together.
    private var reportCount = 0
    private var active: Press?
    private var ended = InlineArray<8, Press>(repeating: Press())
    private var endedIndex = 0
    private var reports = InlineArray<16, Report>(
        repeating: Report(kind: .started, code: 0, volume: 0, duration: 0, timestamp: 0, clockRate: 0)
    )
    private var reportHead = 0

    /// A receiver that has heard nothing.
    ///
    /// - Parameter timeout: how long no packet may come before a press is presumed to have ended; longer than the
    ///   sender's interval and the network's jitter together.
    package init(timeout: Duration = .milliseconds(200)) {
        self.timeout = timeout
    }

    /// Whether no key is down and no report waits.
    package var isIdle: Bool { active == nil && reportCount == 0 }

    /// Takes one packet, of a payload type with that clock rate in Hz; events other than keys and flash say nothing here.
    ///
    /// - Returns: Whether it could be read.
    @discardableResult
    package mutating func receive(
        _ header: RTPHeader,
        payload: Span<UInt8>,
        clockRate: UInt32,
        arrival: MediaTime
    ) -> Bool {
        guard let event = try? TelephoneEvent(parsing: payload) else { return false }
        guard event.code <= TelephoneEvent.flash else { return true }
        let packet = Arrival(
            event: event,
            clockRate: clockRate,
            sequence: SequenceNumber(header.sequenceNumber),
            timestamp: header.timestamp,
            isMarked: header.isMarked,
            time: arrival
        )
        advance(to: arrival)
        if let press = active, continues(press, packet) {
            update(press, with: packet)
            return true
        }
        guard !belongsToEnded(packet) else { return true }
        if let press = active, isBefore(press, packet) {
            // A whole press but this packet was lost, and this one came after the next press began.
            report(.started, Press(packet))
            remember(Press(packet))
            report(.presumedEnded, Press(packet))
            return true
        }
        close(.presumedEnded)
        var press = Press(packet)
        report(.started, press)
        press.isEndedBySender = event.isEnd
        active = press
        if event.isEnd { close(.ended) }
        return true
    }

    /// Ends a press of which no packet has come for `timeout`; to be called every tick.
    package mutating func advance(to now: MediaTime) {
        guard let press = active, now - press.lastArrival >= timeout else { return }
        close(.presumedEnded)
    }

    /// Ends the press that goes on and forgets all others, when another source is heard.
    package mutating func reset() {
        close(.presumedEnded)
        for index in 0..<Self.memory { ended[index].isInUse = false }
    }

    /// The oldest report that has not been taken, or nil.
    package mutating func next() -> Report? {
        guard reportCount > 0 else { return nil }
        let result = reports[reportHead]
        reportHead = (reportHead &+ 1) % Self.reportCapacity
        reportCount &-= 1
        return result
    }

    private func offset(_ packet: Arrival, in press: Press) -> Int64 {
        Int64(Int32(bitPattern: packet.timestamp &- press.start))
    }

    /// Whether the packet is of this press, by code and time; a marker or a shrunken duration in a newer packet says no.
    private func continues(_ press: Press, _ packet: Arrival) -> Bool {
        guard packet.event.code == press.code else { return false }
        let offset = offset(packet, in: press)
        if !packet.isMarked, offset == press.total || offset == press.segmentOffset &+ 0xFFFF { return true }
        guard offset >= 0, offset < press.total else { return false }
        let isNewer = packet.sequence.isNewer(than: press.newest)
        let hasShrunk = Int64(packet.event.duration) < press.segmentDuration
        guard isNewer, !packet.event.isEnd, hasShrunk else { return true }
        return !packet.isMarked && packet.timestamp == press.segmentStart || offset < press.segmentOffset
    }

    private mutating func belongsToEnded(_ packet: Arrival) -> Bool {
        for index in 0..<Self.memory {
            let press = ended[index]
            guard press.isInUse, packet.event.code == press.code, packet.time - press.lastArrival < Self.memorySpan
            else {
                continue
            }
            let offset = offset(packet, in: press)
            let isContiguousEnd = offset == press.total && packet.event.isEnd && !packet.isMarked
            guard offset >= 0, offset < press.total || isContiguousEnd else { continue }
            // Nobody updates an event after its end: this is a new one that reuses the time.
            let isReuse =
                press.isEndedBySender && !packet.event.isEnd && packet.sequence.isNewer(than: press.newest)
                && (packet.isMarked || Int64(packet.event.duration) < press.segmentDuration)
                && offset >= press.segmentOffset
            guard !isReuse else { continue }
            if packet.sequence.isNewer(than: press.newest) { ended[index].newest = packet.sequence }
            ended[index].lastArrival = packet.time
            if packet.event.isEnd { ended[index].isEndedBySender = true }
            return true
        }
        return false
    }

    private func isBefore(_ press: Press, _ packet: Arrival) -> Bool {
        Int32(bitPattern: packet.timestamp &- press.start) < 0 && press.newest.isNewer(than: packet.sequence)
    }

    private mutating func update(_ press: Press, with packet: Arrival) {
        var press = press
        let offset = offset(packet, in: press)
        let duration = Int64(packet.event.duration)
        if offset >= press.total || offset == press.segmentOffset &+ 0xFFFF {
            press.segmentOffset = offset
            press.segmentDuration = duration
        } else if offset >= press.segmentOffset {
            press.segmentDuration = max(press.segmentDuration, duration)
        }
        if packet.sequence.isNewer(than: press.newest) { press.newest = packet.sequence }
        press.lastArrival = packet.time
        press.isEndedBySender = packet.event.isEnd
        active = press
        if packet.event.isEnd { close(.ended) }
    }

    private mutating func close(_ kind: Report.Kind) {
        guard let press = active else { return }
        report(kind, press)
        remember(press)
        active = nil
    }

    private mutating func remember(_ press: Press) {
        ended[endedIndex] = press
        endedIndex = (endedIndex &+ 1) % Self.memory
    }

    private mutating func report(_ kind: Report.Kind, _ press: Press) {
        guard reportCount < Self.reportCapacity else { return }
        reports[(reportHead &+ reportCount) % Self.reportCapacity] = Report(
            kind: kind,
            code: press.code,
            volume: press.volume,
            duration: UInt32(clamping: press.total),
            timestamp: press.start,
            clockRate: press.clockRate
        )
        reportCount &+= 1
    }
}
