internal import Glibc
import MediaEngine

/// Whether a sound card opens as a call would open it, in each direction that it has.
struct CardTrial: Sendable {
    let card: CardDescription
    /// Why it does not open, by direction; empty when it opens.
    private(set) var problems: [CardDirection: String] = [:]

    /// Tries the cards one after the other: two names may stand for one device.
    static func of(_ cards: [any SoundCard]) async throws -> [CardTrial] {
        // Who looks at the cards starts no server; libjack would.
        setenv("JACK_NO_START_SERVER", "1", 0)
        let quiet = QuietStandardError()
        defer { quiet.end() }
        var trials: [CardTrial] = []
        for card in cards where !Interruption.hasCome {
            var trial = CardTrial(card: card.description)
            for direction in trial.directions where trial.card.backend == "alsa" {
                let session = try CardSession()
                do {
                    _ = try await session.open(card, direction)
                } catch {
                    // The remedy that follows is this list.
                    let reason = "\(error)".split(separator: ". ", maxSplits: 1).first.map(String.init) ?? "\(error)"
                    trial.problems[direction] = reason.printable
                }
                await session.stop()
            }
            trials.append(trial)
        }
        return trials
    }

    private var directions: [CardDirection] {
        [CardDirection.playback, .capture].filter { card.directions.contains($0) }
    }

    /// "yes", "no", or the one direction in which it opens.
    var opens: String {
        let working = directions.filter { problems[$0] == nil }
        if working.isEmpty { return "no" }
        return problems.isEmpty ? "yes" : working.map(\.rawValue).joined()
    }

    /// Why it does not open, a line for each reason.
    var explanation: [String] {
        let all = directions.compactMap { direction in problems[direction].map { (direction, $0) } }
        if all.count == 2, all[0].1 == all[1].1 { return ["\(card.name): \(all[0].1)"] }
        return all.map { "\(card.name), \($0.rawValue): \($1)" }
    }
}

/// Standard error goes nowhere until `end`: libraries behind ALSA, as JACK's, write there what they think of the system.
private struct QuietStandardError {
    private let saved = dup(STDERR_FILENO)

    init() {
        let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
        guard saved >= 0, nowhere >= 0 else { return }
        dup2(nowhere, STDERR_FILENO)
        close(nowhere)
    }

    func end() {
        guard saved >= 0 else { return }
        dup2(saved, STDERR_FILENO)
        close(saved)
    }
}
