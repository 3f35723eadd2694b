import Synchronization

/// A card made of files: its microphone is a WAV file, its loudspeaker another.
///
/// It takes what it is given at the pace of time, so in virtual time too. Its endpoints must be served in the
/// background; the file that is played into is complete once `finish` has returned.
public final class FileCard: SoundCard {
    /// "file", built in, with the directions that it has files for.
    public let description: CardDescription
    private let capturePath: String?
    private let playbackPath: String?
    private let sinks = Mutex<[WAVSink]>([])

    /// A card that records the file at `capturePath` and plays into the file at `playbackPath`.
    public init(capturePath: String? = nil, playbackPath: String? = nil) {
        self.capturePath = capturePath
        self.playbackPath = playbackPath
        var capabilities: CardCapabilities = []
        if capturePath != nil { capabilities.insert(.capture) }
        if playbackPath != nil { capabilities.insert(.playback) }
        description = CardDescription(
            id: "builtin:file",
            name: "file",
            backend: "built-in",
            capabilities: capabilities
        )
    }

    /// Creates the file to play into.
    ///
    /// - Throws: `CardError` when there is none, or it cannot be written.
    public func openPlayback(
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardPlayback {
        guard let playbackPath else { throw lacking(.playback) }
        do throws(WAVError) {
            let sink = WAVSink(try WAVWriter(path: playbackPath, format: configuration.format))
            sinks.withLock { $0.append(sink) }
            return PacedPlayback(configuration, sound: PlayedFile(sink))
        } catch {
            throw CardError(.deviceFailure, error.message)
        }
    }

    /// Opens the file to record.
    ///
    /// - Throws: `CardError` when there is none, or it cannot be read.
    public func openCapture(
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardCapture {
        guard let capturePath else { throw lacking(.capture) }
        do throws(WAVError) {
            let feed = WAVFeed(try WAVReader(path: capturePath), format: configuration.format)
            return PacedCapture(configuration, sound: RecordedFile(feed))
        } catch {
            throw CardError(.deviceFailure, error.message)
        }
    }

    /// Writes what waits and closes the file that was played into.
    ///
    /// - Throws: `CardError` when some samples could not be written.
    public func finish() throws(CardError) {
        let open = sinks.withLock { sinks in
            defer { sinks = [] }
            return sinks
        }
        do throws(WAVError) {
            for sink in open { try sink.close() }
        } catch {
            throw CardError(.deviceFailure, error.message)
        }
    }
}

private final class PlayedFile: PacedSound {
    private let sink: WAVSink

    init(_ sink: WAVSink) { self.sink = sink }

    var service: (any BackgroundService)? { sink }

    func play(_ samples: Span<Int16>) { _ = sink.write(samples) }
}

private final class RecordedFile: PacedSound {
    private let feed: WAVFeed

    init(_ feed: WAVFeed) { self.feed = feed }

    var service: (any BackgroundService)? { feed }

    func record(into samples: inout MutableSpan<Int16>, count: Int) {
        samples.withUnsafeMutableBufferPointer { samples in
            var part = UnsafeMutableBufferPointer(rebasing: samples[..<count]).mutableSpan
            let taken = feed.read(into: &part)
            for index in taken..<max(taken, count) { part[index] = 0 }
        }
    }
}
