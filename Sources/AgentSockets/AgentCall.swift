/// What an agent is told of a call when that begins.
///
/// By AudioSocket it is told neither: the call gets a UUID of its own there.
public struct AgentCall: Sendable, Hashable {
    /// What the call is called.
    public var callID: String
    /// What the application tells of it, as who calls: "from", "to" and whatever else the agent knows.
    public var parameters: [String: String]

    /// A call that is called `callID`.
    public init(callID: String, parameters: [String: String] = [:]) {
        (self.callID, self.parameters) = (callID, parameters)
    }
}

/// What became of a mark that an agent set behind what it said.
package enum MarkFate: Sendable, Hashable {
    /// All before it has been played.
    case played
    /// It was cleared, or the call has ended, before that.
    case dropped
}

/// What a call tells an agent.
package enum AgentNotice: Sendable, Hashable {
    case begin(AgentCall)
    /// What is heard: 20 ms, or another whole number of frames.
    case sound([Int16])
    /// So many frames of what the agent said wait to be heard; told with each `sound`.
    case waiting(frameCount: Int)
    case key(Character)
    /// The other side begins to speak, or has ended to, at so many ms of what was heard.
    case speech(Bool, position: Int)
    /// What became of a mark, and how many ms of the agent's sound had been played then.
    case mark(String, MarkFate, position: Int)
    /// What waited was thrown away, as it wanted.
    case cleared
    /// Whom it wanted called in its place does not take the call, by this status.
    case transferFailed(to: String, status: Int)
    /// The call is over, and why, in one word.
    case end(String?)
}

/// What an agent says.
package enum AgentRequest: Sendable, Hashable {
    case sound([Int16])
    /// Tells when what came before it has been played.
    case mark(String)
    /// Plays nothing of what waits.
    case clear
    /// Has what waits go on waiting, or be heard.
    case pause(Bool)
    /// Presses these keys on the other side.
    case press(String)
    /// Holds the call, or resumes it.
    case hold(Bool)
    /// Has the other side call somebody else.
    case transfer(to: String)
    case hangUp

    var isClear: Bool { if case .clear = self { true } else { false } }
}

/// The format of one kind of agents: what a call tells and what an agent says, as frames.
///
/// Whatever comes, it goes on: what is not understood is counted.
/// Thread: one at a time.
package protocol AgentCodec: Sendable {
    /// Whether agents can take back what they have said.
    static var canClear: Bool { get }
    /// Of the sound both ways; one channel.
    var sampleRate: Int { get }
    /// Frames that broke the format.
    var malformedCount: Int { get }

    mutating func encode(_ notice: AgentNotice) -> [AgentFrame]
    mutating func decode(_ frame: AgentFrame) -> [AgentRequest]
}
