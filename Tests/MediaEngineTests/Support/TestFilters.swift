@testable import MediaEngine

/// Gives 0, 1, 2, … one number per sample.
final class CountingSource: Filter, @unchecked Sendable {
    private var next: Int16 = 0

    init(format: AudioFormat = AudioFormat(sampleRate: 8000)) {
        super.init(FilterDescription(name: "counter", purpose: "counts samples", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in samples.indices {
            samples[index] = next
            next &+= 1
        }
    }
}

/// Keeps what it is given, up to a capacity, and how many samples did not follow their predecessor by one.
final class CollectingSink: Filter, @unchecked Sendable {
    private(set) var count = 0
    private(set) var breakCount = 0
    private var last: Int16?
    private let storage: UnsafeMutableBufferPointer<Int16>

    init(format: AudioFormat = AudioFormat(sampleRate: 8000), capacity: Int = 1 << 20) {
        storage = .allocate(capacity: capacity)
        super.init(FilterDescription(name: "collector", purpose: "keeps samples", inputs: [.audio(format)]))
    }

    deinit {
        storage.deallocate()
    }

    var collected: [Int16] { Array(storage.prefix(count)) }

    override func process(_ io: borrowing FilterIO) {
        let block = io.input()
        let samples = block.samples
        for index in samples.indices {
            let sample = samples[index]
            if let last, sample != last &+ 1 { breakCount += 1 }
            last = sample
            guard count < storage.count else { continue }
            storage.initializeElement(at: count, to: sample)
            count += 1
        }
    }
}

/// Passes its input on, with a number added to each sample where it is told so; tells of its third tick.
final class PassThrough: ControlledFilter<PassThrough.Command, PassThrough.Event>, @unchecked Sendable {
    enum Command: Sendable, BitwiseCopyable {
        case add(Int16)
    }

    enum Event: Sendable, BitwiseCopyable, Equatable {
        case third(Int)
    }

    private var offset: Int16 = 0
    private(set) var processCount = 0

    init(format: AudioFormat = AudioFormat(sampleRate: 8000)) {
        super.init(
            FilterDescription(
                name: "pass",
                purpose: "passes samples on",
                inputs: [.audio(format)],
                outputs: [.audio(format)]
            )
        )
    }

    override func process(_ io: borrowing FilterIO) {
        processCount += 1
        let (source, target) = (io.input(), io.output())
        let from = source.samples
        var into = target.mutableSamples
        for index in from.indices { into[index] = from[index] &+ offset }
        if processCount == 3 { emit(.third(3), io) }
    }

    override func handle(_ command: Command) {
        switch command {
        case .add(let number): offset = number
        }
    }
}

/// Gives silence, and tells of so many events in its first tick.
final class EventSource: ControlledFilter<Never, Int>, @unchecked Sendable {
    private var count: Int

    init(count: Int, format: AudioFormat) {
        self.count = count
        super.init(FilterDescription(name: "events", purpose: "tells of events", outputs: [.audio(format)]))
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        for index in samples.indices { samples[index] = 0 }
        while count > 0 {
            emit(count, io)
            count -= 1
        }
    }
}
