@testable import MediaEngine
import TestSupport

/// Takes what a call plays and counts its ticks: where ticks come by themselves, a test waits for one.
final class TickCounter: Filter, @unchecked Sendable {
    let count = Watched(0)

    init(format: AudioFormat = AudioFormat(sampleRate: 8000)) {
        super.init(FilterDescription(name: "tick counter", purpose: "counts ticks", inputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        count.update { $0 += 1 }
    }

    /// Waits for so many ticks; how long they took.
    @discardableResult
    func wait(ticks: Int) async throws -> Duration {
        let (begin, first) = (ContinuousClock.now, count.value)
        try await count.wait { $0 >= first + ticks }
        return .now - begin
    }

    /// Waits, tick by tick, until `condition` holds; answers whether it did within `limit`.
    func wait(_ limit: Duration = .seconds(30), until condition: () -> Bool) async throws -> Bool {
        let end = ContinuousClock.now + limit
        while !condition() {
            guard .now < end else { return false }
            try await wait(ticks: 1)
        }
        return true
    }
}
