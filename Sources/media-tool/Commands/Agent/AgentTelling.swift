import AgentSockets
import CallBasics

extension AgentVoiceEvent {
    /// What it is called in lines, and what it tells.
    var line: (name: String, members: [(String, JSONValue)], text: String) {
        switch self {
        case .speaks: return ("speaks", [], "The agent speaks.")
        case .silent: return ("silent", [], "The agent is silent.")
        case .speechStarted(let time):
            let seconds = time.roundedSeconds
            return ("speechStarted", [("seconds", .number(seconds))], "Speech from \(seconds) s on.")
        case .speechStopped(let time):
            let seconds = time.roundedSeconds
            return ("speechStopped", [("seconds", .number(seconds))], "No speech from \(seconds) s on.")
        case .paused: return ("agentPaused", [], "The agent pauses.")
        case .resumed: return ("agentResumed", [], "The agent goes on.")
        case .marked(let name, let isPlayed, let position):
            let seconds = position.roundedSeconds
            return (
                "marked",
                [("name", .string(name)), ("played", .bool(isPlayed)), ("seconds", .number(seconds))],
                "Mark \(name.printable): \(isPlayed ? "played" : "dropped") at \(seconds) s of its sound."
            )
        case .cleared(let unheard):
            let seconds = unheard.roundedSeconds
            return ("cleared", [("unheardSeconds", .number(seconds))], "Cleared: \(seconds) s were not heard.")
        }
    }
}

extension AgentLine.Event {
    /// What it is called in lines, and what it tells; nil for an end that this side wanted.
    var line: (name: String, members: [(String, JSONValue)], text: String)? {
        switch self {
        case .voice(let event): return event.line
        case .press(let keys): return ("press", [("digits", .string(keys))], "The agent presses \(keys).")
        case .hold(let isHeld):
            return ("hold", [("held", .bool(isHeld))], "The agent \(isHeld ? "holds" : "resumes") the call.")
        case .transfer(let target):
            return ("transferTo", [("to", .string(target))], "The agent wants the call handed to \(target.printable).")
        case .hangUp: return ("hangUp", [], "The agent hangs up.")
        case .ended(let error?): return ("agentEnded", [("reason", .string(error.description))], error.description)
        case .ended(nil): return nil
        }
    }
}

extension SIPTeller {
    /// Tells what happens on a line to an agent, in a call or in none; who speaks is told to scripts alone.
    func tell(_ event: AgentLine.Event, in callID: String? = nil) {
        guard let line = event.line, isJSON || !line.name.hasPrefix("speech") else { return }
        let call: [(String, JSONValue)] = callID.map { [("callID", .string($0))] } ?? []
        tell(line.name, call + line.members, text: line.text)
    }
}

extension AgentReport {
    var members: [(String, JSONValue)] {
        [
            ("heardSeconds", .number(heard.roundedSeconds)), ("playedSeconds", .number(played.roundedSeconds)),
            ("unheardSeconds", .number(unheard.roundedSeconds)), ("lostSeconds", .number(lost.roundedSeconds)),
            ("trimmedSeconds", .number(trimmed.roundedSeconds)),
            ("marks", .object([("played", .integer(playedMarks)), ("dropped", .integer(droppedMarks))])),
            ("clears", .integer(clears)), ("pauses", .integer(pauses)), ("resumptions", .integer(resumptions)),
            ("gaps", .integer(gaps)), ("malformed", .integer(malformed)),
            ("skipped", .integer(skipped)),
        ]
    }

    var text: String {
        """
        The agent heard \(heard.roundedSeconds) s and spoke \(played.roundedSeconds) s; it cleared \(clears) times, by which \
        \(unheard.roundedSeconds) s were not heard.
        Paused by speech: \(pauses) times, \(resumptions) of them for nothing. Marks: \(playedMarks) played, \(droppedMarks) dropped. Gaps in what it said: \(gaps). Not understood: \(malformed) messages.
        """
    }
}
