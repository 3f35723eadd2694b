/// Puts time stamps of codecs with different clock rates on one time line, that of the stream's own codec.
///
/// Where the clock rate changes, nothing relates the time stamps before and after (RFC 7160, section 3). So the first packet
/// after it gets the place that its number gives it, or its arrival when that is much later: the sender had paused.
/// Units: places in units of the stream's own clock rate.
/// Thread: media.
struct TimestampAlignment: BitwiseCopyable {
    /// Where time stamps of one clock rate lie.
    private struct Line: BitwiseCopyable {
        let clockRate: Int64
        var timestamp: UInt32
        var place: UInt32
    }

    private struct Newest: BitwiseCopyable {
        var sequenceNumber: UInt16
        var place: UInt32
        var duration: Int64
        var arrival: MediaTime
    }

    private let clockRate: Int64
    private var current: Line?
    private var former: Line?
    private var newest: Newest?

    /// A time line of `clockRate` units per second, on which nothing lies yet.
    init(clockRate: Int) {
        self.clockRate = Int64(clockRate)
    }

    /// The place of a packet that lasts `duration`, whose codec counts `rate` units per second.
    mutating func place(_ header: PacketHeader, rate: Int, duration: Int) -> UInt32 {
        let step = newest.map { Int64(Int16(bitPattern: header.sequenceNumber &- $0.sequenceNumber)) } ?? 1
        var line = line(of: header, rate: Int64(rate), step: step)
        let offset = Int64(Int32(bitPattern: header.rtpTimestamp &- line.timestamp))
        let place = line.place &+ UInt32(truncatingIfNeeded: offset &* clockRate / line.clockRate)
        guard step > 0 else { return place }
        // Before the difference wraps.
        if abs(offset) > 1 << 30 {
            line.timestamp = header.rtpTimestamp
            line.place = place
        }
        current = line
        // Noise that repeats a time stamp tells nothing of where its sender is.
        if header.isComfortNoise, let newest, Int32(bitPattern: place &- newest.place) <= 0 {
            self.newest?.sequenceNumber = header.sequenceNumber
            return place
        }
        newest = Newest(
            sequenceNumber: header.sequenceNumber,
            place: place,
            duration: Int64(duration),
            arrival: header.arrival
        )
        return place
    }

    /// The line that the packet belongs to: a new one where the clock rate changes, the former one for who comes late.
    private mutating func line(of header: PacketHeader, rate: Int64, step: Int64) -> Line {
        let timestamp = header.rtpTimestamp
        guard let current, let newest else { return Line(clockRate: rate, timestamp: timestamp, place: timestamp) }
        guard current.clockRate != rate else { return current }
        var advance = step &* newest.duration
        if step > 0 {
            former = current
            let elapsed = (header.arrival - newest.arrival).nanoseconds &* clockRate / 1_000_000_000
            if elapsed > advance &+ clockRate / 10 { advance = elapsed }
        } else if let former, former.clockRate == rate {
            return former
        }
        return Line(clockRate: rate, timestamp: timestamp, place: newest.place &+ UInt32(truncatingIfNeeded: advance))
    }
}
