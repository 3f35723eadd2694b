import CallBasics

/// Puts the time stamps of a stream's packets on one time line, whatever codecs they are of and however often the sender
/// sets its clock.
///
/// Where the clock rate changes, nothing relates the time stamps before and after (RFC 7160, section 3); where they leap
/// while numbers go on, the sender has set its clock. In both cases the first packet after it gets the place that its
/// number gives it, or its arrival when that is much later: the sender had paused. So nothing that waits is lost. Where the
/// numbers begin anew, too, the first of them follows the newest packet.
/// Units: places in units of the time line's own rate.
/// Thread: media.
struct TimestampAlignment: BitwiseCopyable {
    /// Where time stamps of one clock rate lie.
    private struct Line: BitwiseCopyable {
        let clockRate: Int64
        /// The number of the first packet on the line.
        let first: UInt16
        var timestamp: UInt32
        var place: UInt32

        func place(of timestamp: UInt32, at rate: Int64) -> UInt32 {
            let offset = Int64(Int32(bitPattern: timestamp &- self.timestamp))
            return place &+ UInt32(truncatingIfNeeded: offset &* rate / clockRate)
        }
    }

    private struct Newest: BitwiseCopyable {
        var sequenceNumber: UInt16
        var timestamp: UInt32
        var place: UInt32
        var duration: Int64
        var arrival: MediaTime
    }

    /// A time stamp that is off by more has leapt, and one by which a packet with the next number would come so much earlier
    /// than the fastest.
    private static var longestLeap: Int64 { 5_000_000_000 }
    private static var longestLead: Int64 { 400_000_000 }
    /// What a packet came later counts e times less after so many.
    private static var lagMemory: Int64 { 512 }

    private let rate: Int64
    private var current: Line?
    private var former: Line?
    private var newest: Newest?
    /// How many nanoseconds later than the fastest packet of late the newest came.
    private var lag: Int64 = 0
    private var beginsNumbers = false
    /// Times that the sender set its clock.
    private(set) var leapCount = 0

    /// A time line of `rate` units per second, on which nothing lies yet.
    init(rate: Int) {
        self.rate = Int64(rate)
    }

    /// Begins anew: another source is heard.
    mutating func begin() {
        (current, former, newest) = (nil, nil, nil)
        (lag, beginsNumbers) = (0, false)
    }

    /// The source begins new numbers and time stamps with the packet that is placed next.
    mutating func beginNumbers() { beginsNumbers = newest != nil }

    /// The place of a packet that lasts `duration`, whose codec counts `clockRate` units per second.
    mutating func place(_ header: PacketHeader, clockRate: Int, duration: Int) -> UInt32 {
        let clockRate = Int64(clockRate)
        guard let newest, var line = current else {
            let line = Line(
                clockRate: clockRate,
                first: header.sequenceNumber,
                timestamp: header.rtpTimestamp,
                place: header.rtpTimestamp
            )
            current = line
            note(header, line.place, duration)
            return line.place
        }
        let isFirst = beginsNumbers
        beginsNumbers = false
        let step = isFirst ? 1 : Int64(Int16(bitPattern: header.sequenceNumber &- newest.sequenceNumber))
        guard step > 0 else { return placeOfLate(header, clockRate, line, newest, step: step) }
        if isFirst || line.clockRate != clockRate || hasLept(header, clockRate, since: newest, step: step) {
            if !isFirst, line.clockRate == clockRate { leapCount &+= 1 }
            former = isFirst ? nil : line
            line = Line(
                clockRate: clockRate,
                first: header.sequenceNumber,
                timestamp: header.rtpTimestamp,
                place: newest.place &+ UInt32(truncatingIfNeeded: advance(to: header, from: newest, step: step))
            )
        }
        let place = line.place(of: header.rtpTimestamp, at: rate)
        // Before the difference wraps.
        if abs(Int64(Int32(bitPattern: header.rtpTimestamp &- line.timestamp))) > 1 << 28 {
            line.timestamp = header.rtpTimestamp
            line.place = place
        }
        current = line
        // Noise that repeats a time stamp tells nothing of where its sender is.
        if header.isComfortNoise, Int32(bitPattern: place &- newest.place) <= 0 {
            self.newest?.sequenceNumber = header.sequenceNumber
        } else {
            note(header, place, duration)
        }
        return place
    }

    private mutating func note(_ header: PacketHeader, _ place: UInt32, _ duration: Int) {
        if let newest {
            let told = nanoseconds(Int64(Int32(bitPattern: place &- newest.place)))
            let change = header.arrival.nanoseconds(since: newest.arrival) &- told
            lag = max(lag &- lag / Self.lagMemory &+ change, 0)
        }
        newest = Newest(
            sequenceNumber: header.sequenceNumber,
            timestamp: header.rtpTimestamp,
            place: place,
            duration: Int64(duration),
            arrival: header.arrival
        )
    }

    /// Where a packet of an older number lies: on the line before, when it was sent before the present one began.
    private func placeOfLate(
        _ header: PacketHeader,
        _ clockRate: Int64,
        _ line: Line,
        _ newest: Newest,
        step: Int64
    ) -> UInt32 {
        let isOlder = Int16(bitPattern: header.sequenceNumber &- line.first) < 0
        let byNumber = newest.place &+ UInt32(truncatingIfNeeded: step &* newest.duration)
        guard isOlder, let former else {
            return line.clockRate == clockRate ? line.place(of: header.rtpTimestamp, at: rate) : byNumber
        }
        guard former.clockRate == clockRate else { return byNumber }
        let place = former.place(of: header.rtpTimestamp, at: rate)
        guard line.clockRate == clockRate else { return place }
        // The first packet of the line may have overtaken others of it.
        let other = line.place(of: header.rtpTimestamp, at: rate)
        return Self.distance(place, byNumber) <= Self.distance(other, byNumber) ? place : other
    }

    private static func distance(_ one: UInt32, _ other: UInt32) -> UInt32 {
        Int32(bitPattern: one &- other).magnitude
    }

    /// Whether the time stamp tells another time than has passed since the newest packet, or goes back.
    private func hasLept(_ header: PacketHeader, _ clockRate: Int64, since newest: Newest, step: Int64) -> Bool {
        let units = Int64(Int32(bitPattern: header.rtpTimestamp &- newest.timestamp))
        if units < 0 { return !header.isComfortNoise }
        let told = units &* 1_000_000_000 / clockRate
        let elapsed = header.arrival.nanoseconds(since: newest.arrival)
        if told > Self.longestLeap, told &- elapsed > Self.longestLeap { return true }
        // Neither a pause nor missing packets account for it: it would have come before its time.
        guard told &- elapsed &- lag > Self.longestLead else { return false }
        return told &- nanoseconds(step &* newest.duration) > Self.longestLead
    }

    private func nanoseconds(_ units: Int64) -> Int64 { units &* 1_000_000_000 / rate }

    /// How far the packet lies behind the newest one by its number, or by its arrival when that is much later.
    private func advance(to header: PacketHeader, from newest: Newest, step: Int64) -> Int64 {
        let byNumber = step &* newest.duration
        let elapsed = header.arrival.nanoseconds(since: newest.arrival)
        let byArrival = elapsed / 1_000_000_000 &* rate &+ elapsed % 1_000_000_000 &* rate / 1_000_000_000
        // Numbers that leap with the time stamps say nothing.
        return byArrival > byNumber &+ rate / 10 ? byArrival : min(byNumber, byArrival &+ rate)
    }
}
