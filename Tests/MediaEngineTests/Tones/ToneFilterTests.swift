import Foundation
import Testing

@testable import MediaEngine

/// Runs one filter by hand: one input and one output block, 10 ms a tick.
private final class Bench {
    let events = RingBuffer<GraphEvent>(minimumCapacity: 64)
    private let filter: Filter
    private let format: AudioFormat
    private let frames: Int
    private let memory: UnsafeMutablePointer<Int16>
    private var time = MediaTime.zero

    init(_ filter: Filter, _ format: AudioFormat) {
        self.filter = filter
        self.format = format
        frames = format.frameCount(in: .milliseconds(10))
        memory = .allocate(capacity: 2 * frames * format.channelCount)
        memory.initialize(repeating: 0, count: 2 * frames * format.channelCount)
    }

    deinit { memory.deallocate() }

    /// The events since the last call, with the time of their tick.
    func drain<Event: BitwiseCopyable>(_ type: Event.Type) -> [(event: Event, time: MediaTime)] {
        var drained: [(event: Event, time: MediaTime)] = []
        while let event = events.pop() { drained.append((event.message.load(as: type), event.time)) }
        return drained
    }

    func tick(_ input: [Int16]? = nil) -> [Int16] {
        let count = frames * format.channelCount
        for index in 0..<count { memory[index] = input?[index] ?? 0 }
        for index in 0..<count { memory[count + index] = 12_345 }
        let slots = [memory, memory + count].map {
            PortSlot(
                base: UnsafeMutableRawPointer($0),
                frameCount: Int32(frames),
                channelCount: Int32(format.channelCount)
            )
        }
        let inputCount = filter.description.inputs.count
        slots.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            let io = FilterIO(
                slots: inputCount == 0 ? base + 1 : base,
                inputCount: inputCount,
                outputCount: filter.description.outputs.count,
                filter: filter.id,
                events: events,
                time: time,
                lateness: .zero,
                tickDuration: .milliseconds(10)
            )
            filter.process(io)
        }
        time += .milliseconds(10)
        return (0..<count).map { memory[count + $0] }
    }
}

struct ToneFilterTests {
    private static let format = AudioFormat(sampleRate: 8000)

    private static func ticks(_ bench: Bench, _ count: Int) -> [Int16] { (0..<count).flatMap { _ in bench.tick() } }

    @Test func `a sequence becomes commands, sound, and events with the time of the command`() throws {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        let sequence = try DTMFSequence(parsing: "15,9")
        for element in sequence.elements {
            switch element {
            case .digit(let digit):
                filter.handle(
                    .play(
                        digit,
                        duration: 65_000_000,
                        gap: 70_000_000,
                        requestedAt: MediaTime(nanoseconds: 77)
                    )
                )
            case .pause(let duration): filter.handle(.pause(duration.nanoseconds))
            }
        }
        let samples = Self.ticks(bench, 250)
        #expect(try ToneTestSignal.digits(in: samples, rate: 8000) == "159")
        var starts: [Int64] = []
        for (event, time) in bench.drain(ToneFilter.Event.self) {
            guard case .digitStarted(let offset, let requestedAt) = event else { continue }
            starts.append(time.nanoseconds + Int64(offset) * 125_000)
            #expect(requestedAt == MediaTime(nanoseconds: 77))
        }
        #expect(starts == [0, 135_000_000, 2_270_000_000])
    }

    @Test func `a key pressed after silence sounds in the next tick`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        filter.handle(.start(ToneTestSignal.digit("1"), requestedAt: .zero))
        _ = Self.ticks(bench, 3)
        filter.handle(.stop(nil))
        _ = Self.ticks(bench, 50)
        filter.handle(.start(ToneTestSignal.digit("2"), requestedAt: .zero))
        #expect(bench.tick().prefix(20).contains { $0 != 0 })
        filter.handle(.stop(ToneTestSignal.digit("2")))
        _ = Self.ticks(bench, 10)
        #expect(bench.tick().allSatisfy { $0 == 0 })
    }

    @Test func `tones are handed over, replaced, and stopped`() throws {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        try filter.prepare(ToneSpec(frequencies: [400]))
        filter.handle(.tone(requestedAt: .zero))
        _ = Self.ticks(bench, 10)
        try filter.prepare(ToneSpec(frequencies: [1000]))
        filter.handle(.tone(requestedAt: MediaTime(nanoseconds: 5)))
        let samples = [Int16](Self.ticks(bench, 20).dropFirst(200))
        #expect(ToneTestSignal.power(of: 1000, in: samples, rate: 8000) > 1e6)
        #expect(ToneTestSignal.power(of: 400, in: samples, rate: 8000) < 100)
        filter.handle(.stopTone)
        _ = Self.ticks(bench, 2)
        let kinds = bench.drain(ToneFilter.Event.self).map { event, _ in
            switch event {
            case .toneStarted(_, let requestedAt): "start of \(requestedAt.nanoseconds)"
            case .toneEnded(_, let requestedAt): "end of \(requestedAt.nanoseconds)"
            case .digitStarted, .digitEnded: "digit"
            }
        }
        #expect(kinds == ["start of 0", "end of 0", "start of 5", "end of 5"])
        #expect(throws: ToneError.self) { try filter.prepare(ToneSpec(frequencies: [4000])) }
    }

    @Test func `what is forgotten is heard no more, its end is told, and what comes later sounds`() throws {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        try filter.prepare(ToneSpec(frequencies: [400]))
        filter.handle(.tone(requestedAt: .zero))
        let digit = ToneTestSignal.digit("4")
        #expect(filter.places.take(2))
        filter.handle(.start(digit, requestedAt: MediaTime(nanoseconds: 1)))
        filter.handle(.play(digit, duration: 1_000_000, gap: 0, requestedAt: MediaTime(nanoseconds: 2)))
        _ = Self.ticks(bench, 10)
        filter.handle(.forget)
        #expect(bench.tick().allSatisfy { $0 == 0 })
        let ends = bench.drain(ToneFilter.Event.self).compactMap { event, _ -> Int64? in
            switch event {
            case .toneEnded(_, let requestedAt), .digitEnded(_, let requestedAt): requestedAt.nanoseconds
            case .toneStarted, .digitStarted: nil
            }
        }
        #expect(ends.sorted() == [0, 1] && filter.places.take(ToneGenerator.queueCapacity))
        filter.handle(.start(digit, requestedAt: .zero))
        #expect(bench.tick().contains { $0 != 0 })
    }

    @Test func `a digit and a gap may be as long as they like`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        filter.handle(.play(ToneTestSignal.digit("4"), duration: .max, gap: .max, requestedAt: .zero))
        _ = bench.tick()
        #expect(bench.tick().contains { $0 != 0 })
        for seconds in [Int64.max, -Int64.max, 200_000] {
            let count = AudioFormat(sampleRate: 48_000).frameCount(in: .seconds(seconds))
            #expect(count == (seconds > 0 ? 1 << 53 : -(1 << 53)))
        }
    }

    @Test func `input passes, and the level is obeyed`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        let ramp = (0..<80).map { Int16($0) }
        #expect(bench.tick(ramp) == ramp)
        filter.handle(.level(Decibels(-30)))
        filter.handle(.start(ToneTestSignal.digit("4"), requestedAt: .zero))
        let peak = Self.ticks(bench, 10).map { abs(Int($0)) }.max() ?? 0
        #expect(peak > 1200 && peak < 1450)
        filter.handle(.stop(nil))
        _ = bench.tick()
        #expect(bench.tick(ramp) == ramp)
    }

    @Test func `who has a place in the queue is not refused, and places come back as digits are played`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        var queued = 0
        while filter.places.take(1) {
            filter.handle(.play(ToneTestSignal.digit("4"), duration: 50_000_000, gap: 50_000_000, requestedAt: .zero))
            queued += 1
        }
        #expect(queued == ToneGenerator.queueCapacity)
        _ = Self.ticks(bench, 100)
        let played = bench.drain(ToneFilter.Event.self).count { event, _ in
            if case .digitStarted = event { true } else { false }
        }
        #expect(played == 10)
        var free = 0
        while filter.places.take(1) { free += 1 }
        #expect(free == played)
        // Whoever plays without a place is left out, and the place comes back.
        filter.handle(.stop(nil))
        for _ in 0..<ToneGenerator.queueCapacity + 5 {
            filter.handle(.play(ToneTestSignal.digit("4"), duration: 50_000_000, gap: 0, requestedAt: .zero))
        }
        #expect(filter.places.take(1))
    }

    @Test func `the detector filter reports digits on the graph's clock and passes the audio on`() throws {
        let filter = try DTMFDetectorFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        var signal = ToneTestSignal(rate: 8000)
        signal.silence(120)
        signal.add(.init(digit: ToneTestSignal.digit("#")), 80)
        signal.silence(100)
        let samples = signal.int16
        for start in stride(from: 0, to: samples.count, by: 80) {
            let block = [Int16](samples[start..<(start + 80)])
            #expect(bench.tick(block) == block)
        }
        let received = bench.drain(DTMFDetectorFilter.Event.self).map(\.event)
        try #require(received.map(\.isOver) == [false, true])
        #expect(received.allSatisfy { $0.digit.description == "#" })
        #expect(abs((received[1].start - .zero).milliseconds - 120) < 5)
        #expect(abs(Double(received[1].nanoseconds) / 1_000_000 - 80) < 5)
    }
}
