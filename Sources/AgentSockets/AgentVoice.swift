/// What happens to what an agent says, and who speaks into it.
public enum AgentVoiceEvent: Sendable, Hashable {
    /// Its sound begins to be spoken.
    case speaks
    /// Nothing of it waits any more.
    case silent
    /// The other side began to speak, or has ended to, when the agent had heard so much.
    case speechStarted(at: Duration)
    case speechStopped(at: Duration)
    /// What it says pauses, since the other side speaks into it.
    case paused
    /// It goes on where it paused, since the agent has not cleared it.
    case resumed
    /// What it had marked was played, or dropped; so much of all that it has said had been played then.
    case marked(name: String, isPlayed: Bool, position: Duration)
    /// It has cleared what was waiting: so much of that was never heard.
    case cleared(unheard: Duration)
}

/// What was carried between a call and an agent.
public struct AgentReport: Sendable, Hashable {
    /// What the agent was sent of the call.
    public var heard = Duration.zero
    /// What was played of its own sound.
    public var played = Duration.zero
    /// What it cleared before it was heard.
    public var unheard = Duration.zero
    /// What found no room.
    public var lost = Duration.zero
    /// What was left out in pauses of its sound, since that came faster than it is spoken.
    public var trimmed = Duration.zero
    /// Marks that were reached.
    public var playedMarks = 0
    /// Marks that were not: in what it cleared, more than 1024, or at the end.
    public var droppedMarks = 0
    /// How often it has cleared.
    public var clears = 0
    /// How often it was paused by speech.
    public var pauses = 0
    /// How often of these it went on without being cleared.
    public var resumptions = 0
    /// Times that its sound had a gap within what it said.
    public var gaps = 0
    /// Messages of it that broke the format; none in the process itself.
    public var malformed = 0
    /// Pieces of sound that it did not take in time.
    public var skipped = 0
}
