public import CallBasics

/// Why a core could not start, or ended.
public typealias CoreError = Failure<CoreFault>

/// The kinds of `CoreError`.
public enum CoreFault: Hashable, Sendable {
    /// Another main runs or is about to.
    case anotherMain
    /// The executor that runs neither ended nor could be ended.
    case executorStays
    /// The core is not running.
    case notRunning
    /// Another owner has taken the place of this core.
    case fenced
}
