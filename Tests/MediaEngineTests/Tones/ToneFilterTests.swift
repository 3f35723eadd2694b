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
        let commands = filter.commands(
            playing: sequence,
            digitDuration: .milliseconds(65),
            gap: .milliseconds(70),
            requestedAt: MediaTime(nanoseconds: 77)
        )
        for command in commands { filter.handle(command) }
        let samples = Self.ticks(bench, 250)
        #expect(try ToneTestSignal.digits(in: samples, rate: 8000) == "159")
        var starts: [Int64] = []
        while let event = bench.events.pop() {
            guard event.name == "digit" else { continue }
            starts.append(event.time.nanoseconds + event.value * 125_000)
            #expect(event.detail == 77)
        }
        #expect(starts == [0, 135_000_000, 2_270_000_000])
    }

    @Test func `a key pressed after silence sounds in the next tick`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        filter.handle(filter.startCommand(ToneTestSignal.digit("1")))
        _ = Self.ticks(bench, 3)
        filter.handle(filter.stopCommand())
        _ = Self.ticks(bench, 50)
        filter.handle(filter.startCommand(ToneTestSignal.digit("2")))
        #expect(bench.tick().prefix(20).contains { $0 != 0 })
        filter.handle(filter.stopCommand(ToneTestSignal.digit("2")))
        _ = Self.ticks(bench, 10)
        #expect(bench.tick().allSatisfy { $0 == 0 })
    }

    @Test func `tones are handed over, replaced, and stopped`() throws {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        filter.handle(try filter.toneCommand(ToneSpec(frequencies: [400])))
        _ = Self.ticks(bench, 10)
        filter.handle(try filter.toneCommand(ToneSpec(frequencies: [1000]), requestedAt: MediaTime(nanoseconds: 5)))
        let samples = [Int16](Self.ticks(bench, 20).dropFirst(200))
        #expect(ToneTestSignal.power(of: 1000, in: samples, rate: 8000) > 1e6)
        #expect(ToneTestSignal.power(of: 400, in: samples, rate: 8000) < 100)
        filter.handle(filter.stopToneCommand())
        _ = Self.ticks(bench, 2)
        var names: [String] = []
        while let event = bench.events.pop() { names.append(event.name.description) }
        #expect(names == ["tonestrt", "toneend", "tonestrt", "toneend"])
        #expect(throws: ToneError.self) { try filter.toneCommand(ToneSpec(frequencies: [4000])) }
    }

    @Test func `input passes, silence and level are obeyed`() throws {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        let ramp = (0..<80).map { Int16($0) }
        #expect(bench.tick(ramp) == ramp)
        filter.handle(try filter.levelCommand(Decibels(-30)))
        filter.handle(filter.playCommand(ToneTestSignal.digit("4"), for: .seconds(60)))
        let peak = Self.ticks(bench, 10).map { abs(Int($0)) }.max() ?? 0
        #expect(peak > 1200 && peak < 1450)
        filter.handle(filter.silenceCommand())
        _ = bench.tick()
        #expect(bench.tick(ramp) == ramp)
        #expect(throws: ToneError.self) { try filter.levelCommand(Decibels(4)) }
    }

    @Test func `digits beyond the queue are refused with an event`() {
        let filter = ToneFilter(format: Self.format)
        let bench = Bench(filter, Self.format)
        for _ in 0..<300 {
            filter.handle(filter.playCommand(ToneTestSignal.digit("4"), requestedAt: MediaTime(nanoseconds: 3)))
        }
        _ = bench.tick()
        var refused: Int64 = 0
        while let event = bench.events.pop() {
            if event.name == "dtmffull" { refused = event.value }
        }
        #expect(refused == 44)
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
        var received: [ReceivedDigit] = []
        while let event = bench.events.pop() { received += [ReceivedDigit(event)].compactMap { $0 } }
        try #require(received.map(\.isOver) == [false, true])
        #expect(received.allSatisfy { $0.digit.description == "#" })
        #expect(abs((received[1].start - .zero).milliseconds - 120) < 5)
        #expect(abs(received[1].duration.milliseconds - 80) < 5)
    }

    @Test func `recorded samples ring with a pause of 2 s, and fade when stopped`() throws {
        let recorded = [Int16](repeating: 10_000, count: 800)
        let filter = RingFilter(try RingSource(samples: recorded, channelCount: 1, format: Self.format))
        let bench = Bench(filter, Self.format)
        let samples = Self.ticks(bench, 230)
        #expect(samples[0..<800].allSatisfy { $0 == 10_000 })
        #expect(samples[800..<16_800].allSatisfy { $0 == 0 })
        #expect(samples[16_800..<17_600].allSatisfy { $0 == 10_000 })
        filter.handle(filter.startCommand())
        filter.handle(filter.stopCommand())
        _ = bench.tick()
        #expect(bench.tick().allSatisfy { $0 == 0 })
        var names: [String] = []
        while let event = bench.events.pop() { names.append(event.name.description) }
        #expect(names == ["ringstrt", "ringend"])
        filter.handle(filter.startCommand())
        var block = bench.tick()
        #expect(block.allSatisfy { $0 == 10_000 })
        block = bench.tick()
        filter.handle(filter.stopCommand())
        block = bench.tick()
        #expect(zip(block, block.dropFirst()).allSatisfy { $0 >= $1 && $0 - $1 < 500 })
    }

    @Test func `a ring adapts its channels and refuses what does not fit`() throws {
        let stereo = AudioFormat(sampleRate: 8000, channelCount: 2)
        let source = try RingSource(samples: [1, 2], channelCount: 1, format: stereo, pause: .zero)
        source.start()
        var block = [Int16](repeating: 9, count: 8)
        var span = block.mutableSpan
        source.render(into: &span)
        #expect(block == [1, 1, 2, 2, 1, 1, 2, 2])
        let mono = try RingSource(samples: [100, 300, 5, 7], channelCount: 2, format: Self.format, pause: .zero)
        mono.start()
        var frames = [Int16](repeating: 9, count: 2)
        var frameSpan = frames.mutableSpan
        mono.render(into: &frameSpan)
        #expect(frames == [200, 6])
        #expect(throws: ToneError.self) { try RingSource(samples: [], channelCount: 1, format: stereo) }
        #expect(throws: ToneError.self) {
            try RingSource(samples: [1, 2, 3], channelCount: 3, format: stereo)
        }
    }

    @Test func `a ring tone rings until stopped`() throws {
        let spec = try CallProgressTones.spec("ringback", country: "DE")
        let filter = RingFilter(try RingSource(tone: spec, format: Self.format))
        let bench = Bench(filter, Self.format)
        let samples = Self.ticks(bench, 600)
        #expect(samples[200..<7800].contains { abs(Int($0)) > 5000 })
        #expect(samples[8000..<40_000].allSatisfy { $0 == 0 })
        #expect(samples[40_100..<47_000].contains { abs(Int($0)) > 5000 })
        filter.handle(filter.stopCommand())
        _ = bench.tick()
        #expect(bench.tick().allSatisfy { $0 == 0 })
    }
}
