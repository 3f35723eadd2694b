import Testing

@testable import AgentSockets

@Suite struct SpeechQueueTests {
    /// A call that takes so much at once, and plays 20 ms a tick.
    private struct Call {
        var queue = SpeechQueue(sampleRate: 8000)
        var queued = 0
        var played: [Int16] = []
        var marks: [(name: String, position: Int)] = []
        private var waiting: [Int16] = []
        var hasRoomForMarks = true

        mutating func pass() {
            var (taken, reached) = ([Int16](), [(name: String, trimmed: Int)]())
            let room = 3200 - waiting.count
            let takesMarks = hasRoomForMarks
            var places: [Int] = []
            queue.pass(
                write: { span in
                    let count = min(span.count, room - taken.count)
                    for index in 0..<count { taken.append(span[index]) }
                    return count
                },
                mark: { name, trimmed in
                    guard takesMarks else { return false }
                    reached.append((name, trimmed))
                    places.append(taken.count)
                    return true
                }
            )
            // What was left out before counts as said.
            for ((name, trimmed), place) in zip(reached, places) {
                marks.append((name, played.count + waiting.count + place + trimmed))
            }
            waiting += taken
        }

        mutating func tick() {
            played += waiting.prefix(160)
            waiting.removeFirst(min(160, waiting.count))
            queued = waiting.count
            queue.tick(queued: queued)
            pass()
        }

        mutating func add(_ samples: [Int16]) -> Int {
            let lost = queue.add(samples)
            pass()
            return lost
        }
    }

    private static func sound(_ count: Int) -> [Int16] { (0..<count).map { Int16(truncatingIfNeeded: $0) } }

    @Test(arguments: [1, 7, 160, 320, 5000])
    func `what is said in one burst comes out whole and in order`(pieceCount: Int) {
        var call = Call()
        let sound = Self.sound(20_000)
        for start in stride(from: 0, to: sound.count, by: pieceCount) {
            let lost = call.add(Array(sound[start..<min(start + pieceCount, sound.count)]))
            #expect(lost == 0)
        }
        for _ in 0..<130 { call.tick() }
        #expect(call.played == sound && call.queue.waitingFrameCount == 0 && call.queue.gapCount == 0)
    }

    @Test func `marks come when the sound before them has been taken`() {
        var call = Call()
        _ = call.queue.add(mark: "at once")
        call.pass()
        for number in 0..<4 {
            _ = call.add(Self.sound(8000))
            _ = call.queue.add(mark: "\(number)")
            call.pass()
        }
        for _ in 0..<220 { call.tick() }
        #expect(call.marks.map(\.name) == ["at once", "0", "1", "2", "3"])
        #expect(call.marks.map(\.position) == [0, 8000, 16_000, 24_000, 32_000])
    }

    @Test func `a mark that the call has no room for comes later, and so does the sound behind it`() {
        var call = Call()
        call.hasRoomForMarks = false
        _ = call.queue.add(mark: "one")
        _ = call.add(Self.sound(800))
        for _ in 0..<10 { call.tick() }
        #expect(call.played.isEmpty && call.queue.waitingMarkCount == 1)
        call.hasRoomForMarks = true
        for _ in 0..<10 { call.tick() }
        #expect(call.played.count == 800 && call.marks.map(\.name) == ["one"])
    }

    @Test func `what is cleared is gone with its marks, and what comes then is heard`() {
        var call = Call()
        _ = call.add(Self.sound(16_000))
        for name in ["a", "b"] { _ = call.queue.add(mark: name) }
        for _ in 0..<5 { call.tick() }
        let names = [call.queue.clear(), call.queue.clear()]
        #expect(names == [["a", "b"], []])
        #expect(call.queue.waitingFrameCount == 0 && call.queue.waitingMarkCount == 0)
        let heard = call.played.count
        _ = call.add([Int16](repeating: 9, count: 1600))
        for _ in 0..<60 { call.tick() }
        #expect(call.played.count > heard && call.played.suffix(1600).allSatisfy { $0 == 9 })
    }

    @Test func `the first piece waits for more, but not for long`() {
        var call = Call()
        _ = call.add(Self.sound(160))
        var ticks = 0
        while call.played.isEmpty, ticks < 20 {
            call.tick()
            ticks += 1
        }
        #expect(ticks == 4)
        var burst = Call()
        _ = burst.add(Self.sound(1600))
        burst.tick()
        #expect(burst.played.count == 160)
    }

    @Test func `each gap makes the delay longer, and time without one shorter again`() {
        var call = Call()
        for _ in 0..<20 {
            _ = call.add(Self.sound(320))
            let before = call.played.count
            while call.played.count < before + 320 || call.queued > 0 { call.tick() }
            for _ in 0..<3 { call.tick() }
        }
        #expect(call.queue.gapCount == 19 && call.queue.delayTicks == 10)
        for _ in 0..<3000 {
            _ = call.add(Self.sound(160))
            call.tick()
        }
        #expect(call.queue.gapCount == 20 && call.queue.delayTicks == 2)
    }

    /// Pieces of 40 ms at the pace of speech, of which each third comes 80 ms late, and those behind it with it.
    @Test func `an agent whose pieces come late is heard without gaps after a few`() {
        var call = Call()
        var gaps: [Int] = []
        for tick in 0..<1200 {
            let pieces = tick % 6 == 2 && tick > 2 ? 3 : tick <= 2 && tick % 2 == 0 ? 1 : 0
            for _ in 0..<pieces { _ = call.add(Self.sound(320)) }
            call.tick()
            gaps.append(call.queue.gapCount)
        }
        #expect(gaps[1199] == gaps[300] && gaps[1199] < 10, "\(gaps[1199])")
    }

    /// Speech at 1 s, of which 300 ms are a pause, that comes 1.25 % faster than it is played.
    private static func fast(_ tick: Int, isPausing: Bool = true) -> [Int16] {
        (0..<162).map { index in
            let isQuiet = isPausing && tick % 50 >= 35
            return isQuiet ? Int16(index % 3) : Int16(index % 7 * 1000 + 500)
        }
    }

    @Test func `what comes faster than it is spoken is trimmed in its pauses, and nothing else is left out`() {
        var call = Call()
        var most = 0
        for tick in 0..<3000 {
            _ = call.add(Self.fast(tick))
            call.tick()
            if tick > 300 { most = max(most, call.queue.waitingFrameCount + call.queued) }
        }
        // Untrimmed it would be 750 ms.
        #expect(most <= 8 * 160, "\(most)")
        #expect(call.queue.trimmedFrameCount >= 5000 && call.queue.gapCount == 0, "\(call.queue.trimmedFrameCount)")
        let loud = call.played.filter { abs(Int($0)) >= 500 }
        let said = (0..<3000).flatMap { Self.fast($0) }.filter { abs(Int($0)) >= 500 }
        #expect(loud == Array(said[..<loud.count]) && loud.count + 2000 > said.count)
    }

    @Test func `who never pauses is not trimmed, and neither is a burst`() {
        var (steady, burst) = (Call(), Call())
        let pause = [Int16](repeating: 0, count: 8000)
        var pieces = Call()
        for tick in 0..<1000 {
            _ = steady.add(Self.fast(tick, isPausing: false))
            steady.tick()
            if tick % 100 == 0 {
                _ = burst.add(pause + pause)
                for _ in 0..<(tick == 0 ? 150 : 100) { _ = pieces.add(Array(pause[..<160])) }
            }
            burst.tick()
            pieces.tick()
        }
        #expect(pieces.queue.trimmedFrameCount == 0)
        #expect(steady.queue.trimmedFrameCount == 0 && burst.queue.trimmedFrameCount == 0)
        #expect(burst.played.count == 1000 * 160)
    }

    @Test func `what comes at the pace of speech behind a burst, or while nothing is played, leaves that whole`() {
        // 8 s of which half are pauses, and speech at once behind them.
        let greeting = (0..<64_000).map { $0 / 4000 % 2 == 0 ? Int16(5000) : 0 }
        var call = Call()
        _ = call.add(greeting)
        for tick in 0..<390 {
            _ = call.add(Self.fast(tick))
            call.tick()
        }
        #expect(call.queue.trimmedFrameCount == 0 && call.played == Array(greeting.prefix(390 * 160)))
        var held = SpeechQueue(sampleRate: 8000)
        for tick in 0..<600 {
            _ = held.add(Self.fast(tick))
            held.tick(queued: 0, isPlaying: tick < 10)
            held.pass(write: { span in tick < 10 ? span.count : 0 }, mark: { _, _ in true })
        }
        #expect(held.trimmedFrameCount == 0)
    }

    @Test func `a mark knows what was left out before it`() {
        var call = Call()
        for tick in 0..<1000 {
            _ = call.add(Self.fast(tick))
            if tick % 100 == 99 { _ = call.queue.add(mark: "\(tick + 1)") }
            call.tick()
        }
        #expect(call.marks.count == 10 && call.queue.trimmedFrameCount > 0)
        for (name, position) in call.marks {
            #expect(position == (Int(name) ?? 0) * 162, "\(name)")
        }
    }

    /// Speech in pieces of 40 ms, 300 ms of each 1 s a pause; each second one piece comes 60 ms late, and those behind it with it.
    @Test(arguments: 0..<4)
    func `pieces that come 60 ms late each second have one gap at most, and what is added drains`(shift: Int) {
        var call = Call()
        var (levels, gaps) = ([Int](), [Int]())
        func piece(_ number: Int) -> [Int16] { [Int16](repeating: number % 25 >= 17 ? 0 : 5000, count: 320) }
        var (given, due) = (0, 0)
        for tick in 0..<2000 {
            if tick % 2 == 0 { due += 1 }
            let isLate = tick < 1000 && tick > 10 && (tick + 12 * shift) % 50 < 3
            while given < due, !isLate {
                _ = call.add(piece(given))
                given += 1
            }
            call.tick()
            levels.append(call.queue.waitingFrameCount + call.queued)
            gaps.append(call.queue.gapCount)
        }
        #expect(gaps[1999] == 1, "\(gaps[1999])")
        // Of 60 ms at first: up to 80 more, and none of them 5 s after the last late piece.
        let (most, last) = (levels.max() ?? 0, levels[1250...].max() ?? 0)
        #expect(most <= 140 * 8 && last <= 80 * 8, "\(most) \(last)")
    }

    @Test func `pieces of one sample take no more room than others`() {
        var queue = SpeechQueue(sampleRate: 8000)
        for _ in 0..<50_000 { _ = queue.add([1]) }
        #expect(queue.waitingFrameCount == 50_000 && queue.pieceCount <= 7)
        // Taken one by one, too, however quiet they are.
        var taken = 0
        while queue.waitingFrameCount > 0 {
            queue.pass(
                write: { span in
                    taken += min(span.count, 1)
                    return min(span.count, 1)
                },
                mark: { _, _ in true }
            )
        }
        #expect(taken == 50_000 && queue.trimmedFrameCount == 0)
    }

    @Test func `ten minutes may wait, and a thousand marks`() {
        var queue = SpeechQueue(sampleRate: 8000)
        func add(_ samples: [Int16]) -> Int { queue.add(samples) }
        func add(mark name: String) -> Bool { queue.add(mark: name) }
        let minute = [Int16](repeating: 1, count: 8000 * 60)
        for _ in 0..<10 { #expect(add(minute) == 0) }
        #expect(add([1, 2, 3]) == 3 && queue.waitingFrameCount == 8000 * 600)
        for number in 0..<1024 { #expect(add(mark: "\(number)")) }
        #expect(!add(mark: "one too many"))
        let names = queue.clear()
        #expect(names.count == 1024 && add(minute) == 0)
    }
}
