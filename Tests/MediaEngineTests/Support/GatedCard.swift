import CallBasics
import TestSupport

@testable import MediaEngine

/// A card that opens when it is told to, and knows how many of its endpoints are open.
final class GatedCard: SoundCard, Sendable {
    /// Lowers the count when the endpoint is freed.
    private final class Endpoint: CardEndpoint, @unchecked Sendable {
        private let inner: any CardEndpoint
        private let openCount: Watched<Int>

        init(_ inner: any CardEndpoint, _ card: GatedCard) {
            self.inner = inner
            openCount = card.openCount
            openCount.update { $0 += 1 }
            card.opened.update { $0 += 1 }
        }

        deinit {
            openCount.update { $0 -= 1 }
        }

        var direction: CardDirection { inner.direction }
        var format: AudioFormat { inner.format }
        var periodFrameCount: Int { inner.periodFrameCount }
        var bufferFrameCount: Int { inner.bufferFrameCount }
        func frameCount(at now: MediaTime) -> Int { inner.frameCount(at: now) }
        func write(_ samples: Span<Int16>, at now: MediaTime) -> CardTransfer { inner.write(samples, at: now) }
        func read(into samples: inout MutableSpan<Int16>, at now: MediaTime) -> CardTransfer {
            inner.read(into: &samples, at: now)
        }
        func restart(at now: MediaTime) { inner.restart(at: now) }
    }

    let description: CardDescription
    let openCount = Watched(0)
    /// Openings that have begun, and that were successful.
    let begun = Watched(0)
    let opened = Watched(0)
    private let mayOpen: Watched<Bool>
    private let inner = NullCard()

    init(name: String, isOpen: Bool = true) {
        description = CardDescription(id: CardID("test:\(name)"), name: name, backend: "test", directions: .duplex)
        mayOpen = Watched(isOpen)
    }

    func letOpen() { mayOpen.update { $0 = true } }

    func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        begun.update { $0 += 1 }
        Polling.wait { mayOpen.value }
        return Endpoint(inner.open(direction, configuration, at: now), self)
    }
}
