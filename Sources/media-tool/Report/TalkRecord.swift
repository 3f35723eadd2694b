/// What happened in a recorded call with an agent, as `--record` writes it beside the sound.
///
///     {"callID":…,"parameters":{…},"left":"agent","right":"other side","events":[{"atSeconds":1.2,"event":"speaks"},…]}
struct TalkRecord {
    /// One thing that happened.
    struct Event {
        /// In seconds from the beginning of the recording on.
        let time: Double
        /// A word.
        let name: String
        let members: [(String, JSONValue)]

        /// A number that it tells.
        func number(_ name: String) -> Double? { members.first { $0.0 == name }?.1.number }
        /// A text that it tells.
        func text(_ name: String) -> String? { members.first { $0.0 == name }?.1.string }
        /// Whether it tells that something is so.
        func isTrue(_ name: String) -> Bool { members.contains { $0.0 == name && $0.1.text == "true" } }
    }

    let callID: String
    let parameters: [(name: String, value: String)]
    let events: [Event]

    /// Whether a file looks like one.
    static func isLikely(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes.prefix(64), as: UTF8.self).filter { !$0.isWhitespace }.hasPrefix(#"{"callID":"#)
    }

    /// - Throws: `ToolFailure` when something is not as it has to be
    init(parsing bytes: [UInt8]) throws {
        let whole: JSONValue
        do { whole = try JSONValue(parsing: bytes) } catch {
            throw ToolFailure("It is no JSON: \(error). Give what --record wrote.")
        }
        guard let callID = whole["callID"]?.string, let rows = whole["events"]?.values else {
            throw ToolFailure("It has no Call-ID or no events. Give what --record wrote.")
        }
        self.callID = callID
        parameters = (whole["parameters"]?.members ?? []).compactMap { name, value in value.string.map { (name, $0) } }
        events = try rows.enumerated().map { index, row in
            guard let time = row["atSeconds"]?.number, time.isFinite, time >= 0, let name = row["event"]?.string else {
                throw ToolFailure("Event \(index + 1) has no time, or no word. Give what --record wrote.")
            }
            return Event(
                time: time,
                name: name,
                members: (row.members ?? []).filter { $0.0 != "atSeconds" && $0.0 != "event" }
            )
        }
    }

    // MARK: What it comes to

    /// A time from one moment to another.
    typealias Stretch = (start: Double, end: Double)

    /// When the other side spoke; what had not ended lasts to `end`.
    func speech(until end: Double) -> [Stretch] {
        stretches(until: end, from: ["speechStarted"], to: ["speechStopped"]) { $0.number("seconds") ?? $0.time }
    }

    /// When what the agent said was paused by that.
    func pauses(until end: Double) -> [Stretch] {
        stretches(until: end, from: ["agentPaused"], to: ["agentResumed", "cleared"]) { $0.time }
    }

    private func stretches(
        until end: Double,
        from starts: Set<String>,
        to ends: Set<String>,
        _ time: (Event) -> Double
    ) -> [Stretch] {
        var (found, start) = ([Stretch](), Double?.none)
        for event in events {
            if starts.contains(event.name) { start = start ?? time(event) }
            guard ends.contains(event.name), let begin = start.take() else { continue }
            found.append((begin, max(time(event), begin)))
        }
        if let start { found.append((start, max(end, start))) }
        return found
    }

    /// How long the other side waited for the agent each time that it had spoken, in seconds.
    var answerTimes: [Double] {
        var (times, stop, speaking) = ([Double](), Double?.none, Double?.none)
        for event in events {
            switch event.name {
            case "speechStarted": stop = nil
            case "speechStopped":
                // That it has stopped is known later, and who speaks into an agent that goes on is not answered.
                let from = event.number("seconds") ?? event.time
                if let speaking, speaking >= from { times.append(speaking - from) }
                stop = speaking == nil ? from : nil
            case "speaks":
                speaking = event.time
                if let from = stop.take() { times.append(max(event.time - from, 0)) }
            // It goes on with what it said before.
            case "agentResumed": speaking = 0
            case "silent", "agentPaused", "cleared": speaking = nil
            default: break
            }
        }
        return times
    }

    /// How often it answered, and after how many seconds; nil where it never did.
    var answers: (count: Int, median: Double, longest: Double)? {
        let times = answerTimes.sorted()
        return times.last.map { (times.count, times[times.count / 2], $0) }
    }

    /// How many events of a kind there are.
    func count(_ name: String) -> Int { events.count { $0.name == name } }
}
