import CallBasics
import MediaEngine
import TestSupport
import Testing

@testable import media_tool

/// What is told of cards that go and come back.
@Suite struct CardWatchTests {
    private let told = Watched<[String]>([])

    private func watch() -> CardWatch { CardWatch { [told] line in told.update { $0.append(line) } } }

    private func event(_ kind: CardRouteEvent.Kind, _ direction: CardDirection = .capture, at second: Int64)
        -> CardRouteEvent
    {
        let time = MediaTime(nanoseconds: second * 1_000_000_000)
        return CardRouteEvent(kind: kind, role: .call, direction: direction, card: "USB", time: time)
    }

    @Test func `a card that stays is not worth a word`() {
        let watch = watch()
        for kind in [CardRouteEvent.Kind.cardOpened, .xrun(lostFrameCount: 480), .cardClosed] {
            watch.note(event(kind, at: 1))
        }
        #expect(told.value.isEmpty)
        #expect(watch.failure(at: MediaTime(nanoseconds: 9)) == nil)
    }

    @Test func `a card that goes and comes back is told twice, and is a failure with its length`() throws {
        let watch = watch()
        watch.note(event(.cardOpened, at: 1))
        watch.note(event(.cardLost, at: 2))
        watch.note(event(.cardBack, at: 5))
        #expect(told.value.count == 2)
        #expect(told.value[0].contains("USB is gone") && told.value[1].contains("USB is back after 3"))
        let failure = try #require(watch.failure(at: MediaTime(nanoseconds: 20_000_000_000)))
        #expect(failure.description.contains("USB") && failure.description.contains("3"), "\(failure.description)")
    }

    @Test func `each direction is missed for itself, and one that never comes back until the end`() throws {
        let watch = watch()
        watch.note(event(.cardLost, at: 2))
        watch.note(event(.cardLost, .playback, at: 3))
        watch.note(event(.cardBack, at: 4))
        let failure = try #require(watch.failure(at: MediaTime(nanoseconds: 13_000_000_000)))
        #expect(failure.description.contains("12"), "\(failure.description)")
    }
}
