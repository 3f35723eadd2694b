package import CallBasics

/// How bad a network is, in one direction.
public struct Impairment: Sendable, Hashable {
    /// Mean share of packets lost, 0 to 100 %.
    public var lossPercent = 0.0
    /// Mean length of a run of lost packets, at least 1.
    public var burstLength = 1.0
    /// Delay of every packet.
    public var delay = Duration.zero
    /// Delay on top, drawn evenly from zero to this for each packet; more than a packet's length reorders.
    public var jitter = Duration.zero
    /// Share of packets held back by `reorderDelay`, 0 to 100 %, so that later ones overtake them.
    public var reorderPercent = 0.0
    /// How long a reordered packet is held back.
    public var reorderDelay = Duration.milliseconds(50)
    /// Share of packets that arrive twice, 0 to 100 %.
    public var duplicatePercent = 0.0

    /// A perfect network.
    public init() {}

    /// Whether packets pass unharmed.
    package var isNone: Bool {
        var perfect = Impairment()
        perfect.burstLength = burstLength
        perfect.reorderDelay = reorderDelay
        return self == perfect
    }
}

/// What an impaired link did to the packets.
package struct ImpairmentStatistics: Sendable, BitwiseCopyable, Equatable {
    /// Packets that came to the link.
    package internal(set) var packetCount = 0
    /// Packets it lost on purpose.
    package internal(set) var lostCount = 0
    /// Packets it held back on purpose.
    package internal(set) var reorderedCount = 0
    /// Packets it doubled on purpose.
    package internal(set) var duplicatedCount = 0
}

/// Draws the fate of each packet from a seed: a Gilbert-Elliott chain for loss, and even distributions for the rest.
///
/// In the good state every packet passes, in the bad state none does. With mean burst length b and mean loss p the
/// chain leaves the bad state with probability q = 1/b and enters it with q·p/(1-p).
/// Every packet takes the same number of draws, so a packet's fate depends on the seed and its place alone.
struct ImpairmentModel: Sendable {
    struct Fate: Equatable {
        var isLost: Bool
        var delay: Duration
        var isReordered: Bool
        var isDuplicated: Bool
    }

    private let impairment: Impairment
    private var generator: SeededGenerator
    private var isBad = false

    init(_ impairment: Impairment, seed: UInt64) {
        self.impairment = impairment
        generator = SeededGenerator(seed: seed)
    }

    mutating func next() -> Fate {
        let (change, jitter) = (generator.nextUnit(), generator.nextUnit())
        let (reorder, duplicate) = (generator.nextUnit(), generator.nextUnit())
        let loss = min(max(impairment.lossPercent / 100, 0), 1)
        let leave = 1 / max(impairment.burstLength, 1)
        if loss >= 1 {
            isBad = true
        } else if isBad {
            isBad = change >= leave
        } else {
            isBad = change < leave * loss / (1 - loss)
        }
        let isReordered = reorder * 100 < impairment.reorderPercent
        var delay = impairment.delay.nanoseconds &+ Int64(jitter * Double(impairment.jitter.nanoseconds))
        if isReordered { delay &+= impairment.reorderDelay.nanoseconds }
        return Fate(
            isLost: isBad,
            delay: .nanoseconds(delay),
            isReordered: isReordered,
            isDuplicated: duplicate * 100 < impairment.duplicatePercent
        )
    }
}

/// A link that loses, delays, reorders and doubles what arrives over another link, the same way for the same seed.
///
/// It works on the receiving side, so it impairs sockets and simulated networks alike. What is sent passes unharmed:
/// the other end has its own.
/// Thread: media.
package final class ImpairedLink: DatagramLink, @unchecked Sendable {
    private let link: any DatagramLink
    private var model: ImpairmentModel
    private var queue = DatagramQueue(capacity: 1024)
    private let published = LatestValue(ImpairmentStatistics())
    private var counters = ImpairmentStatistics()

    /// Datagrams that are impaired at once, so that a flood costs a bounded time.
    private static let budget = 256

    /// A link that impairs what arrives over `link`.
    package init(_ link: any DatagramLink, _ impairment: Impairment, seed: UInt64) {
        self.link = link
        model = ImpairmentModel(impairment, seed: seed)
    }

    /// What was done to packets so far.
    package var statistics: ImpairmentStatistics { published.value }

    /// Sends over the link beneath, unharmed.
    @discardableResult
    package func send(_ bytes: Span<UInt8>, to destination: SocketAddress, at now: MediaTime) -> Bool {
        link.send(bytes, to: destination, at: now)
    }

    /// Takes what has arrived by `now` and was not lost.
    package func receive(into buffer: inout MutableSpan<UInt8>, at now: MediaTime) -> ReceivedDatagram? {
        for _ in 0..<Self.budget {
            guard let datagram = link.receive(into: &buffer, at: now) else { break }
            impair(datagram, buffer.span)
        }
        return queue.remove(into: &buffer, dueBy: now)
    }

    /// Hands the wish on to the link beneath.
    @discardableResult
    package func accept(only source: SocketAddress?, or other: SocketAddress?) -> Bool {
        link.accept(only: source, or: other)
    }

    /// What the link beneath has dropped.
    package var droppedCount: Int { link.droppedCount }

    /// What the link beneath was told.
    package var unreachableCount: Int { link.unreachableCount }

    private func impair(_ datagram: ReceivedDatagram, _ bytes: Span<UInt8>) {
        let fate = model.next()
        counters.packetCount &+= 1
        if fate.isLost {
            counters.lostCount &+= 1
        } else {
            let payload = bytes.extracting(first: min(datagram.byteCount, bytes.count))
            queue.insert(payload, from: datagram.source, due: datagram.arrival + fate.delay)
            if fate.isReordered { counters.reorderedCount &+= 1 }
            if fate.isDuplicated {
                counters.duplicatedCount &+= 1
                queue.insert(payload, from: datagram.source, due: datagram.arrival + fate.delay)
            }
        }
        published.publish(counters)
    }
}
