import MediaEngine

/// Gives chirps, one per second, and notes when each began.
///
///     chirps ─► audio
final class ChirpSourceFilter: Filter, @unchecked Sendable {
    /// When the chirps began, in the order of time; for one reader.
    let starts = RingBuffer<MediaTime>(minimumCapacity: 128)
    /// Chirps to give.
    let count: Int

    /// From one chirp to the next.
    static let interval = Duration.seconds(1)
    /// From the start to the first chirp: cards and the jitter buffer settle.
    static let settling = Duration.seconds(3)

    private let table: UnsafeMutableBufferPointer<Int16>
    private let channelCount: Int
    private var given = 0
    private var begin: MediaTime?
    private var position: Int

    init(format: AudioFormat, count: Int) {
        let samples = ChirpProbe(sampleRate: format.sampleRate).samples
        table = .allocate(capacity: samples.count)
        _ = table.initialize(from: samples)
        channelCount = format.channelCount
        position = samples.count
        self.count = count
        super.init(
            FilterDescription(name: "chirps", purpose: "Gives a chirp per second.", outputs: [.audio(format)])
        )
    }

    deinit {
        table.deallocate()
    }

    override func process(_ io: borrowing FilterIO) {
        let block = io.output()
        var samples = block.mutableSamples
        let first = begin ?? io.time
        begin = first
        if given < count, io.time >= first + Self.settling + Self.interval * given {
            given &+= 1
            position = 0
            starts.push(io.time)
        }
        var index = 0
        while index < samples.count {
            let sample = position < table.count ? table[position] : 0
            for channel in 0..<channelCount { samples[index &+ channel] = sample }
            position &+= 1
            index &+= channelCount
        }
    }
}
