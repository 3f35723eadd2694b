import CallBasics

/// Turns a bounded queue of keys and pauses into telephone-event packets, at the pace of the RTP clock.
///
/// Every event: a first packet with the marker, updates each `packetInterval` with the same time stamp and a growing
/// duration, and a last packet sent three times, spaced at the interval. A packet claims the time up to the next one, so
/// that none has duration 0. An event longer than 65535 units goes on in a new segment, whose time stamp is the old
/// one's end (section 2.5.1.3); the last packet of a segment is repeated, too.
/// Units: durations in units of `clockRate`, once they are inside.
/// Thread: media; no method allocates.
/// Source: RFC 4733, section 2.5.1
package struct TelephoneEventSender: ~Copyable, Sendable {
    /// Keys and pauses that can wait.
    package static let capacity = 64
    /// The shortest event: detectors need not accept less (ITU-T Q.24).
    package static let minimumDuration = Duration.milliseconds(40)
    /// The shortest length of a held key, so that a quick touch reaches gateways that play tones of it.
    package static let minimumHeldDuration = Duration.milliseconds(100)

    /// A packet to send: the session numbers it.
    package struct Packet: Sendable, BitwiseCopyable, Equatable {
        /// The payload.
        package let event: TelephoneEvent
        /// The time stamp of the event's or segment's beginning, on the time line that `next` was given.
        package let timestamp: UInt32
        /// Whether the packet is the event's first.
        package let isMarked: Bool
    }

    /// The RTP clock rate of the payload type, in Hz.
    package private(set) var clockRate: UInt32
    private var interval: Int64
    private let packetInterval: Duration
    private let volume: UInt8

    private struct Item: BitwiseCopyable {
        var kind: Kind = .pause
        var code: UInt8 = 0
        var units: Int64 = 0
        var gap: Int64 = 0
    }

    private enum Kind: UInt8, BitwiseCopyable { case event, held, pause }
    private enum Phase: UInt8, BitwiseCopyable { case idle, sounding, repeatingEnd, waiting }

    private var head = 0
    /// Keys and pauses that wait.
    package private(set) var queuedCount = 0

    private var phase = Phase.idle
    private var item = Item()
    private var eventStart: UInt32 = 0
    private var nextPacketTime: UInt32 = 0
    private var waitEnd: UInt32 = 0
    private var claimed: Int64 = 0
    private var segmentOffset: Int64 = 0
    private var endRepeats = 0
    private var segmentRepeats = 0
    private var isSegmentRepeatDue = false
    private var isFirstPacket = false
    // Last, so that what every tick asks lies together.
    private var queue = InlineArray<64, Item>(repeating: Item())

    /// A sender with an empty queue.
    ///
    /// - Parameters:
    ///   - clockRate: the RTP clock rate of the payload type in Hz, 1000 at least.
    ///   - packetInterval: time between updates, 10 ms or more; RFC 4733 advises 50 ms at most.
    ///   - volume: the power that is told to the other side, in -dBm0.
    package init(clockRate: UInt32, packetInterval: Duration = .milliseconds(20), volume: UInt8 = 10) {
        self.clockRate = max(clockRate, 1000)
        self.volume = volume
        self.packetInterval = max(packetInterval, .milliseconds(10))
        // A segment must hold at least one interval.
        interval = min(self.packetInterval.clockUnits(at: self.clockRate), 0xFFFF)
    }

    /// Whether nothing sounds, waits or is queued.
    package var isIdle: Bool { phase == .idle && queuedCount == 0 }

    /// Whether an event is being sent, its repeated ends included: audio stays away for so long.
    package var isSending: Bool { phase == .sounding || phase == .repeatingEnd }

    /// Appends the event `code` for `duration`, at least 40 ms, and `gap` after it; answers false when the queue is full.
    @discardableResult
    package mutating func enqueue(
        _ code: UInt8,
        duration: Duration = .milliseconds(100),
        gap: Duration = .milliseconds(100)
    ) -> Bool {
        append(Item(kind: .event, code: code, units: units(max(duration, Self.minimumDuration)), gap: units(gap)))
    }

    /// Appends a pause; answers false when the queue is full.
    @discardableResult
    package mutating func enqueuePause(_ duration: Duration = .seconds(2)) -> Bool {
        append(Item(kind: .pause, units: units(duration)))
    }

    /// Appends the event `code` until `stop`; answers false when the queue is full.
    ///
    /// A key that is still held ends first.
    @discardableResult
    package mutating func start(_ code: UInt8) -> Bool {
        stop()
        return append(Item(kind: .held, code: code, units: .max, gap: units(.milliseconds(40))))
    }

    /// Ends the held key, at the next tick if it has lasted 100 ms, else as soon as it has.
    package mutating func stop() {
        let least = units(Self.minimumHeldDuration)
        if phase == .sounding, item.kind == .held {
            item.kind = .event
            // The marker that the next tick replaces by what has sounded.
            item.units = -least
        }
        for index in 0..<queuedCount {
            let slot = (head &+ index) % Self.capacity
            guard queue[slot].kind == .held else { continue }
            queue[slot].kind = .event
            queue[slot].units = least
        }
    }

    /// Goes on with another clock rate: what waits keeps its length, what sounds is cut off.
    package mutating func change(clockRate rate: UInt32) {
        guard rate != clockRate, rate >= 1000 else { return }
        for index in 0..<queuedCount {
            let slot = (head &+ index) % Self.capacity
            if queue[slot].units != .max { queue[slot].units = queue[slot].units &* Int64(rate) / Int64(clockRate) }
            queue[slot].gap = queue[slot].gap &* Int64(rate) / Int64(clockRate)
        }
        clockRate = rate
        interval = min(packetInterval.clockUnits(at: rate), 0xFFFF)
        phase = .idle
    }

    /// The next packet that is due at `timestamp`; call until it answers nil, once per tick.
    ///
    /// - Parameter timestamp: the present RTP time, in units of `clockRate`, on the time line of the audio packets.
    /// - Returns: a packet to send now, or nil when no more are due.
    package mutating func next(at timestamp: UInt32) -> Packet? {
        while true {
            switch phase {
            case .idle:
                guard beginNextItem(at: timestamp) else { return nil }
            case .waiting:
                guard isReached(waitEnd, at: timestamp) else { return nil }
                phase = .idle
            case .sounding:
                resolveStop(at: timestamp)
                guard isReached(nextPacketTime, at: timestamp) else { return nil }
                return nextWhileSounding(at: timestamp)
            case .repeatingEnd:
                guard endRepeats > 0 else {
                    // The gap counts from the event's end, which the last packet told ahead of time.
                    waitEnd = eventStart &+ UInt32(truncatingIfNeeded: claimed &+ item.gap)
                    phase = .waiting
                    continue
                }
                guard isReached(nextPacketTime, at: timestamp) else { return nil }
                endRepeats &-= 1
                advance(from: timestamp)
                return packet(isEnd: true)
            }
        }
    }

    private mutating func beginNextItem(at timestamp: UInt32) -> Bool {
        guard queuedCount > 0 else { return false }
        item = queue[head]
        head = (head &+ 1) % Self.capacity
        queuedCount &-= 1
        guard item.kind != .pause else {
            waitEnd = timestamp &+ UInt32(truncatingIfNeeded: item.units)
            phase = .waiting
            return true
        }
        phase = .sounding
        eventStart = timestamp
        nextPacketTime = timestamp
        claimed = 0
        segmentOffset = 0
        segmentRepeats = 0
        isSegmentRepeatDue = false
        isFirstPacket = true
        return true
    }

    /// Gives a key that was let go the length that it has had, or its least one.
    private mutating func resolveStop(at timestamp: UInt32) {
        guard item.units < 0 else { return }
        let elapsed = Int64(timestamp &- eventStart)
        // What was told reaches the end of a segment: the next one has to last, too.
        let told = claimed > 0 && claimed == segmentOffset ? claimed &+ 1 : claimed
        item.units = max(elapsed, told, -item.units)
        if claimed > 0, elapsed &+ interval >= item.units { nextPacketTime = timestamp }
    }

    private mutating func nextWhileSounding(at timestamp: UInt32) -> Packet {
        if isSegmentRepeatDue {
            isSegmentRepeatDue = false
            segmentRepeats &-= 1
            let event = TelephoneEvent(code: item.code, isEnd: false, volume: wireVolume, duration: 0xFFFF)
            let start = eventStart &+ UInt32(truncatingIfNeeded: segmentOffset &- 0xFFFF)
            return Packet(event: event, timestamp: start, isMarked: false)
        }
        let goal = min(Int64(timestamp &- eventStart) &+ interval, item.units)
        claimed = max(min(goal, segmentOffset &+ 0xFFFF), claimed)
        let isEnd = claimed >= item.units
        let isSegmentEnd = !isEnd && claimed == segmentOffset &+ 0xFFFF
        let result = packet(isEnd: isEnd)
        isFirstPacket = false
        advance(from: timestamp)
        if isEnd {
            phase = .repeatingEnd
            endRepeats = 2
        } else if isSegmentEnd {
            segmentOffset &+= 0xFFFF
            segmentRepeats = 2
        }
        isSegmentRepeatDue = segmentRepeats > 0
        return result
    }

    private mutating func advance(from timestamp: UInt32) {
        nextPacketTime &+= UInt32(truncatingIfNeeded: interval)
        // After a stall the packets that were missed stay unsent: durations tell all.
        if isReached(nextPacketTime, at: timestamp) {
            nextPacketTime = timestamp &+ UInt32(truncatingIfNeeded: interval)
        }
    }

    private func packet(isEnd: Bool) -> Packet {
        let duration = UInt16(clamping: claimed &- segmentOffset)
        let event = TelephoneEvent(code: item.code, isEnd: isEnd, volume: wireVolume, duration: duration)
        let start = eventStart &+ UInt32(truncatingIfNeeded: segmentOffset)
        return Packet(event: event, timestamp: start, isMarked: isFirstPacket)
    }

    /// Only tones have a volume (section 2.3.3).
    private var wireVolume: UInt8 { item.code < TelephoneEvent.flash ? volume : 0 }

    private func isReached(_ time: UInt32, at timestamp: UInt32) -> Bool {
        Int32(bitPattern: timestamp &- time) >= 0
    }

    private mutating func append(_ item: Item) -> Bool {
        guard queuedCount < Self.capacity else { return false }
        queue[(head &+ queuedCount) % Self.capacity] = item
        queuedCount &+= 1
        return true
    }

    /// At most half the time stamp's range, beyond which later and earlier cannot be told apart.
    private func units(_ duration: Duration) -> Int64 {
        min(max(duration, .zero).clockUnits(at: clockRate), 0x7FFF_0000)
    }
}
