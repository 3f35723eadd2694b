/// Why an agent cannot be talked to.
///
/// `description` is one sentence that says what is wrong and what to do.
public struct AgentError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failures.
    public enum Code: Sendable, Hashable {
        /// An address that cannot be read.
        case invalidAddress
        /// Options that do not go together, or a file that is not what it has to be.
        case invalidOptions
        /// Nobody takes the connection, or what is there does not speak the format.
        case unreachable
        /// The agent has ended the connection in order.
        case ended
        /// The connection broke off, or the agent broke its rules.
        case disconnected
    }

    /// What kind of failure it is.
    public let code: Code
    /// What is wrong, and what to do.
    public let description: String

    /// A format has no such sound.
    static func noSound(_ format: String, _ rate: Int, instead: Int) -> AgentError {
        AgentError(.invalidOptions, "The format \(format) has no sound of \(rate) Hz. Take \(instead).")
    }

    package init(_ code: Code, _ description: String) { (self.code, self.description) = (code, description) }
}
