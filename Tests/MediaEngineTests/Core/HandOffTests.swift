@testable import MediaEngine
import Synchronization
import Testing

@Suite struct HandOffTests {
    private final class Counted {
        static let alive = Atomic<Int>(0)
        let number: Int

        init(_ number: Int) {
            self.number = number
            Self.alive.wrappingAdd(1, ordering: .relaxed)
        }

        deinit {
            Self.alive.wrappingSubtract(1, ordering: .relaxed)
        }
    }

    @Test func `only the newest offer is taken, and nothing leaks`() throws {
        do {
            let handOff = HandOff<Counted>()
            handOff.offer(Counted(1))
            handOff.offer(Counted(2))
            #expect(Counted.alive.load(ordering: .relaxed) == 1)
            let taken = try #require(handOff.take())
            #expect(taken.takeUnretainedValue().number == 2)
            #expect(handOff.take() == nil)
            handOff.retire(taken)
            handOff.reclaim()
            #expect(Counted.alive.load(ordering: .relaxed) == 0)
            handOff.offer(Counted(3))
        }
        #expect(Counted.alive.load(ordering: .relaxed) == 0)
    }

    @Test func `what cannot be given back is not taken`() throws {
        let handOff = HandOff<Counted>(capacity: 2)
        var taken = 0
        for number in 0..<10 {
            handOff.offer(Counted(number))
            // The offer has freed what was retired; from here on only the media side acts.
            while let object = handOff.take() {
                taken += 1
                handOff.retire(object)
            }
        }
        #expect(taken == 10)
    }
}

@Suite struct LatestValueTests {
    private struct Pair: BitwiseCopyable {
        var left = 0
        var right = 0
    }

    @Test func `a reader sees whole values, and the newest last`() async {
        let latest = LatestValue(Pair())
        let reader = Task.detached {
            var last = 0
            while last < 100_000 {
                let pair = latest.value
                guard pair.left == pair.right, pair.left >= last else { return false }
                last = pair.left
            }
            return true
        }
        for number in 1...100_000 { latest.publish(Pair(left: number, right: number)) }
        #expect(await reader.value)
        #expect(latest.value.left == 100_000)
    }
}
