public import MediaEngine
import Synchronization

/// A card made of files: its microphone is a WAV file, its loudspeaker another.
///
/// It takes what it is given at the pace of time, so in virtual time too. The file that is played into is complete once
/// `finish` has returned; each opening begins it anew.
public final class FileCard: SoundCard {
    /// "file", built in, with the directions that it has files for.
    public let description: CardDescription
    private let capturePath: String?
    private let playbackPath: String?
    private let sink = Mutex<WAVSink?>(nil)

    /// A card that records the file at `capturePath` and plays into the file at `playbackPath`.
    public init(capturePath: String? = nil, playbackPath: String? = nil) {
        self.capturePath = capturePath
        self.playbackPath = playbackPath
        var directions: Set<CardDirection> = []
        if capturePath != nil { directions.insert(.capture) }
        if playbackPath != nil { directions.insert(.playback) }
        description = CardDescription(
            id: "builtin:file",
            name: "file",
            backend: "built-in",
            directions: directions
        )
    }

    /// Opens the file to record, or creates the one to play into.
    ///
    /// - Throws: `CardError` when there is none for this direction, or it cannot be read or written.
    public func open(
        _ direction: CardDirection,
        _ configuration: CardConfiguration,
        at now: MediaTime
    ) throws(CardError) -> any CardEndpoint {
        guard let path = direction == .playback ? playbackPath : capturePath else { throw lacking(direction) }
        do throws(WAVError) {
            switch direction {
            case .playback:
                // What is left of the former one would be written over the new. That it is incomplete harms nobody any more.
                do throws(WAVError) { try sink.withLock { $0.take() }?.close() } catch {}
                let sink = WAVSink(try WAVWriter(path: path, format: configuration.format))
                self.sink.withLock { $0 = sink }
                return PacedEndpoint(direction, configuration, sound: PlayedFile(sink))
            case .capture:
                let feed = WAVFeed(try WAVReader(path: path), format: configuration.format)
                return PacedEndpoint(direction, configuration, sound: RecordedFile(feed))
            }
        } catch {
            throw CardError(.deviceFailure, error.message)
        }
    }

    /// Writes what waits and closes the file that was played into.
    ///
    /// - Throws: `CardError` when some samples could not be written.
    public func finish() throws(CardError) {
        do throws(WAVError) {
            try sink.withLock { $0.take() }?.close()
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
