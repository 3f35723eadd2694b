import MediaEngine

/// The DTMF digits of a recording, found in each of its channels alone.
///
/// Two sides of a call that press keys at once would hide each other in the mean of their channels.
struct ChannelDigits: Sendable {
    /// A digit that was found.
    struct Event: Sendable, Hashable {
        let digit: DTMFDigit
        /// The channel that it is in, from 0.
        let channel: Int
        let start: Duration
        let duration: Duration
    }

    /// Channels of the recording.
    let channelCount: Int
    /// What was found, in the order of time; of two that begin together, that of the lower channel first.
    let events: [Event]

    /// Whether the file holds fewer samples than it says.
    let isTruncated: Bool

    /// Reads the file at `path` to its end, or until `isEnough` says so.
    ///
    /// - Throws: `WAVError` when the file cannot be read; `ToneError` for a rate that cannot be.
    init(path: String, until isEnough: () -> Bool = { false }) throws {
        let reader = try WAVReader(path: path)
        let format = reader.format
        let channelCount = format.channelCount
        // Below 8000 Hz the detector does not go; above, every rate is heard as it is.
        let isResampled = !(8000...192_000).contains(format.sampleRate)
        let sampleRate = isResampled ? 16_000 : format.sampleRate
        var listeners = try (0..<channelCount).map { channel in try Listener(channel, sampleRate: sampleRate) }
        func hear(_ samples: Span<Int16>) {
            for index in listeners.indices { listeners[index].hear(samples, channelCount: channelCount) }
        }
        if isResampled {
            let feed = WAVFeed(reader, format: AudioFormat(sampleRate: sampleRate, channelCount: channelCount))
            var block = [Int16](repeating: 0, count: Self.blockFrameCount * channelCount)
            while !feed.isEnded, !isEnough() {
                feed.serve()
                var target = block.mutableSpan
                let count = feed.read(into: &target)
                hear(block.span.extracting(0..<count))
            }
            if let failure = feed.failure { throw failure }
            isTruncated = feed.isTruncated
        } else {
            var block = [Int16](repeating: 0, count: Self.blockFrameCount * channelCount)
            while !isEnough() {
                var target = block.mutableSpan
                let count = try reader.read(into: &target)
                guard count > 0 else { break }
                hear(block.span.extracting(0..<count * channelCount))
            }
            isTruncated = reader.isTruncated
        }
        self.channelCount = channelCount
        events = listeners.flatMap { $0.finished() }.sorted { ($0.start, $0.channel) < ($1.start, $1.channel) }
    }

    private static let blockFrameCount = 1024

    /// The digits in the order of time; one that sounds in several channels at once is one.
    var digits: String {
        var told: [Event] = []
        for event in events {
            let isKnown = told.suffix(channelCount).contains {
                $0.digit == event.digit && $0.channel != event.channel && event.start < $0.start + $0.duration
            }
            if !isKnown { told.append(event) }
        }
        return told.map(\.digit.description).joined()
    }

    /// The digits of one channel, in the order of time.
    func digits(inChannel channel: Int) -> String {
        events.filter { $0.channel == channel }.map(\.digit.description).joined()
    }

    /// The detector of one channel.
    private struct Listener {
        private let channel: Int
        private let sampleRate: Int
        private let detector: DTMFDetector
        private var samples: [Int16] = []
        private var events: [Event] = []

        init(_ channel: Int, sampleRate: Int) throws(ToneError) {
            (self.channel, self.sampleRate) = (channel, sampleRate)
            detector = try DTMFDetector(sampleRate: sampleRate)
        }

        mutating func hear(_ interleaved: Span<Int16>, channelCount: Int) {
            samples.removeAll(keepingCapacity: true)
            for index in stride(from: channel, to: interleaved.count, by: channelCount) {
                samples.append(interleaved[index])
            }
            detector.process(samples.span)
            events += detections
        }

        /// What was found, when there is no more to hear.
        func finished() -> [Event] {
            detector.finish()
            return events + detections
        }

        private var detections: [Event] {
            let format = AudioFormat(sampleRate: sampleRate)
            var found: [Event] = []
            while let event = detector.nextDetection() {
                guard event.phase == .ended else { continue }
                found.append(
                    Event(
                        digit: event.digit,
                        channel: channel,
                        start: format.duration(ofFrames: event.startFrame),
                        duration: format.duration(ofFrames: event.frameCount)
                    )
                )
            }
            return found
        }
    }
}
