/// What one direction of a card did so far.
public struct CardReport: Sendable, Hashable {
    /// Which way sound goes through it.
    public var direction: CardDirection
    /// The card's name.
    public var name: String
    /// Sound in the card: the latency it adds.
    public var latencyMs: Double
    /// By how much the card's clock is faster than the ticks', in parts per million; nil before it is known, and for a
    /// card without a clock of its own.
    public var ppm: Double?
    /// By how much the ratio between card and graph is corrected, in parts per million.
    package var correctionPPM: Double
    /// Times that the card ran empty or over.
    public var xruns: Int
    /// Sound not heard or not recorded.
    public var lostMs: Double
    /// Silence put in place of what was lost, so that what follows is where it belongs.
    package var insertedMs: Double
    /// Times that the card stopped moving without an error.
    package var stalls: Int
    /// Times that the machine slept.
    public var suspends: Int
    /// Times that the card gave too little for a tick, or took too little of one, without an error.
    package var shortages: Int
    /// Times that the card went away.
    public var disappearances: Int
    /// Times that there was a card again after one had gone.
    public var reopenings: Int
    /// Sound discarded, or silence recorded, while there was no card.
    public var withoutCardMs: Double

    init(_ direction: CardDirection, _ name: String, _ statistics: CardStatistics, _ format: AudioFormat) {
        func milliseconds(_ frames: Int) -> Double {
            (Double(frames) * 100_000 / Double(format.sampleRate)).rounded() / 100
        }
        self.direction = direction
        self.name = name
        latencyMs = milliseconds(statistics.latencyFrames)
        ppm = statistics.ppm.map { ($0 * 10).rounded() / 10 }
        correctionPPM = (statistics.correctionPPM * 10).rounded() / 10
        xruns = statistics.xruns
        lostMs = milliseconds(statistics.framesLost)
        insertedMs = milliseconds(statistics.framesInserted)
        stalls = statistics.stalls
        suspends = statistics.suspends
        shortages = statistics.shortages
        disappearances = statistics.disappearances
        reopenings = statistics.reopenings
        withoutCardMs = milliseconds(statistics.framesWithoutCard)
    }

    /// The report as one line for people.
    package var line: String {
        var text = "\(direction) on \(name): \(latencyMs) ms"
        if let ppm { text += ", clock \(ppm) ppm" }
        text += ", \(xruns) xruns, \(lostMs) ms lost"
        if stalls > 0 { text += ", stood \(stalls) times" }
        if suspends > 0 { text += ", slept \(suspends) times" }
        if disappearances > 0 { text += ", away \(disappearances) times" }
        if withoutCardMs > 0 { text += ", \(withoutCardMs) ms without a card" }
        return text
    }
}
