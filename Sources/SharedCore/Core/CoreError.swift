/// Why a core could not start, or ended.
public struct CoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
        /// Another main runs or is about to.
        case anotherMain
        /// The executor that runs neither ended nor could be ended.
        case executorStays
        /// The core is not running.
        case notRunning
        /// Another owner has taken the place of this core.
        case fenced
    }

    /// The kind of failure.
    public let code: Code
    /// What failed and the remedy.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
