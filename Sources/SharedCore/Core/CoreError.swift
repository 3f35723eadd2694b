public import CallBasics

/// Why a core could not start, or ended.
public typealias CoreError = Failure<CoreFault>

/// The kinds of `CoreError`.
public enum CoreFault: Hashable, Sendable {
    /// A main of another process runs or is about to.
    case anotherMain
    /// Another process takes the calls of the group, or is about to.
    case callsTaken
    /// The executor that runs neither ended nor could be ended.
    case executorStays
    /// The core is not running.
    case notRunning
    /// Another owner has taken the place of this core.
    case fenced
}
