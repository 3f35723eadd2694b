package import CallBasics

/// Decides when the next RTCP packet is due, so that all members together keep to their share of the bandwidth.
///
/// The interval is random between half and one and a half times its computed length, divided by e - 1.5, which makes up
/// for the reconsideration at expiry; the first one is half as long.
/// Thread: any, one at a time; time and random numbers are given.
/// Source: RFC 3550, sections 6.2, 6.3 and A.7
package struct RTCPScheduler: Sendable, BitwiseCopyable {
    /// The least interval before randomising; 5 s by RFC 3550, section 6.2.
    package let minimumInterval: Duration
    /// RTCP's share of the session's bandwidth, in bytes per second.
    package let bandwidth: Double
    /// Bytes of IP and UDP headers that count as part of every RTCP packet.
    package static let lowerLayerByteCount = 28

    /// Members of the session, this one included.
    package private(set) var memberCount = 1
    /// Members that send, this one included.
    package private(set) var senderCount = 0
    /// The running average of RTCP packets' bytes, lower layers included.
    package private(set) var averageByteCount: Double
    /// When the next packet is due, before reconsideration.
    package private(set) var nextTransmission = MediaTime.zero

    private var lastTransmission = MediaTime.zero
    private var memberCountAtSchedule = 1
    private var isInitial = true
    private var isSender = false
    private var hasStarted = false

    /// A scheduler for one member.
    ///
    /// - Parameters:
    ///   - minimumInterval: the least interval before randomising.
    ///   - bandwidth: bytes per second for RTCP of all members: 5 % of the session's bandwidth; at least 1.
    ///   - typicalByteCount: bytes of the packet that is going to be sent, the first guess of the average.
    package init(minimumInterval: Duration = .seconds(5), bandwidth: Double = 400, typicalByteCount: Int = 80) {
        self.minimumInterval = max(minimumInterval, .milliseconds(10))
        self.bandwidth = max(bandwidth, 1)
        averageByteCount = Double(typicalByteCount &+ Self.lowerLayerByteCount)
    }

    /// Begins at `now`: draws the first interval.
    package mutating func start(at now: MediaTime, using generator: inout SeededGenerator) {
        hasStarted = true
        lastTransmission = now
        nextTransmission = now + interval(using: &generator)
    }

    /// Tells how many members and senders there are.
    ///
    /// When members have left, the next packet moves closer in proportion (reverse reconsideration, section 6.3.4).
    package mutating func update(memberCount members: Int, senderCount senders: Int, isSender: Bool, at now: MediaTime)
    {
        memberCount = max(members, 1)
        senderCount = min(max(senders, 0), memberCount)
        self.isSender = isSender
        guard hasStarted, memberCount < memberCountAtSchedule else { return }
        let ratio = Double(memberCount) / Double(memberCountAtSchedule)
        nextTransmission = now + .nanoseconds(Int64(Double((nextTransmission - now).nanoseconds) * ratio))
        lastTransmission = now - .nanoseconds(Int64(Double((now - lastTransmission).nanoseconds) * ratio))
        memberCountAtSchedule = memberCount
    }

    /// Takes the size of an RTCP datagram that was sent or received into the average.
    package mutating func account(byteCount: Int) {
        averageByteCount += (Double(byteCount &+ Self.lowerLayerByteCount) - averageByteCount) / 16
    }

    /// Whether it has begun and its next packet lies ahead.
    func waits(at now: MediaTime) -> Bool { hasStarted && now < nextTransmission }

    /// Whether a packet must be sent now, by timer reconsideration; if not, a later time has been drawn.
    package mutating func isDue(at now: MediaTime, using generator: inout SeededGenerator) -> Bool {
        guard hasStarted else {
            start(at: now, using: &generator)
            return false
        }
        guard now >= nextTransmission else { return false }
        let reconsidered = lastTransmission + interval(using: &generator)
        guard reconsidered <= now else {
            nextTransmission = reconsidered
            memberCountAtSchedule = memberCount
            return false
        }
        return true
    }

    /// Notes that a packet of `byteCount` bytes was sent at `now`, and draws the next interval.
    package mutating func didSend(byteCount: Int, at now: MediaTime, using generator: inout SeededGenerator) {
        account(byteCount: byteCount)
        hasStarted = true
        lastTransmission = now
        isInitial = false
        nextTransmission = now + interval(using: &generator)
        memberCountAtSchedule = memberCount
    }

    /// Makes the next packet due at once, as a collision asks for.
    package mutating func expedite(at now: MediaTime) {
        nextTransmission = now
        lastTransmission = now - minimumInterval - minimumInterval
        hasStarted = true
    }

    /// The interval before randomising: the members' packets at their share of the bandwidth, at least the minimum.
    package var deterministicInterval: Duration {
        var share = bandwidth
        var sharers = memberCount
        if senderCount > 0, 4 * senderCount <= memberCount {
            share *= isSender ? 0.25 : 0.75
            sharers = isSender ? senderCount : memberCount - senderCount
        }
        let minimum = isInitial ? minimumInterval / 2 : minimumInterval
        let seconds = min(averageByteCount * Double(sharers) / share, 86_400)
        return max(.nanoseconds(Int64(seconds * 1_000_000_000)), minimum)
    }

    private func interval(using generator: inout SeededGenerator) -> Duration {
        let randomised = Double(deterministicInterval.nanoseconds) * (0.5 + generator.nextUnit())
        return .nanoseconds(Int64(randomised / Self.compensation))
    }

    /// e - 3/2 (RFC 3550, section 6.3.1).
    private static let compensation = 1.21828
}
