import MediaEngine

/// How long chirps took from one side's mouth to the other side's ear, cards included.
struct MouthToEar {
    /// One chirp that was heard.
    struct Chirp {
        let delayMs: Double
        /// What of the delay was codec, network and jitter buffer; nil when nothing was played.
        let streamMs: Double?
        let confidence: Double
    }

    /// What codec, network and jitter buffer took at a time.
    struct StreamDelay {
        let time: MediaTime
        let milliseconds: Double?
    }

    /// The chirps that were heard.
    let chirps: [Chirp]
    /// Chirps that were sent.
    let sentCount: Int

    /// Finds the chirps of `source` in what `listener` heard; `streams` are in the order of time.
    ///
    /// - Throws: `ToolFailure` when none was heard.
    init(_ listener: ChirpListener, _ source: ChirpSourceFilter, streams: [StreamDelay]) throws {
        let probe = ChirpProbe(sampleRate: CallEngine.cardFormat.sampleRate)
        var found: [Chirp] = []
        var sent = 0
        while let start = source.starts.pop() {
            sent += 1
            let first = listener.frame(at: start)
            let last = listener.frame(at: start + ChirpSourceFilter.interval)
            guard first < last, let chirp = probe.detect(in: Array(listener.samples[first..<last])) else { continue }
            let heard = listener.time(ofFrame: Double(first) + chirp.frame)
            found.append(
                Chirp(
                    delayMs: (heard - start).milliseconds,
                    streamMs: (streams.last { $0.time <= heard } ?? streams.first)?.milliseconds,
                    confidence: chirp.confidence
                )
            )
        }
        guard !found.isEmpty else {
            throw ToolFailure(
                "None of \(sent) chirps was heard. Turn the card's volume and microphone up, put one before the other, or "
                    + "name the card that hears with --capture-device."
            )
        }
        chirps = found
        sentCount = sent
    }

    /// The delay in the middle, to a hundredth of a millisecond.
    var medianMs: Double { Self.median(chirps.map(\.delayMs)) ?? 0 }

    /// What of the delay is codec, network and jitter buffer, in the middle; nil when nothing was played.
    private var streamMs: Double? { Self.median(chirps.compactMap(\.streamMs)) }
    private var minimumMs: Double { Self.rounded(chirps.map(\.delayMs).min() ?? 0) }
    private var maximumMs: Double { Self.rounded(chirps.map(\.delayMs).max() ?? 0) }
    private var cardsMs: Double? {
        Self.median(chirps.compactMap { chirp in chirp.streamMs.map { chirp.delayMs - $0 } })
    }

    func json(codec: String, _ playback: any SoundCard, _ capture: any SoundCard, _ leg: LegReport) -> JSONValue {
        [
            "codec": .string(codec),
            "playbackDevice": .string(playback.description.name),
            "captureDevice": .string(capture.description.name),
            "mouthToEarMs": .number(medianMs),
            "minimumMs": .number(minimumMs),
            "maximumMs": .number(maximumMs),
            "streamMs": JSONValue(streamMs),
            "cardsMs": JSONValue(cardsMs),
            "sent": .integer(sentCount),
            "heard": .integer(chirps.count),
            "chirps": .array(
                chirps.map { chirp in
                    [
                        "delayMs": .number(Self.rounded(chirp.delayMs)),
                        "streamMs": JSONValue(chirp.streamMs.map(Self.rounded)),
                        "confidence": .number(Self.rounded(chirp.confidence)),
                    ]
                }
            ),
            "report": leg.json,
        ]
    }

    func text(codec: String, _ playback: any SoundCard, _ capture: any SoundCard) -> String {
        let names = [playback, capture].map(\.description.name)
        let way = names[0] == names[1] ? names[0] : "\(names[0]) to \(names[1])"
        let shares = streamMs.flatMap { stream in
            cardsMs.map { "of it codec, network and jitter buffer \(stream) ms, cards and air \($0) ms\n" }
        }
        return
            "mouth to ear \(medianMs) ms (\(minimumMs) to \(maximumMs)), \(chirps.count) of \(sentCount) chirps heard; "
            + "\(codec), \(way)\n" + (shares ?? "")
    }

    private static func median(_ values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return rounded(sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2)
    }

    private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }
}
