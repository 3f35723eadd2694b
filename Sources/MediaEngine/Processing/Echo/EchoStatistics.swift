package import CallBasics

/// What an echo canceller found and did.
package struct EchoStatistics: Hashable, Sendable, BitwiseCopyable {
    /// How much of what was captured is removed while the far end speaks, over the last seconds; what the near end
    /// says meanwhile is not removed, and lowers it.
    package var returnLossEnhancement = Decibels.unity
    /// The delay from what is played to its echo; nil until it was found.
    package var delay: Duration?
    /// How long an echo may last to be cancelled.
    package var tail = Duration.zero
    /// Times that the reference was moved by a few samples, because some had been lost on a card.
    package var realignmentCount = 0
    /// Times that the canceller began anew, because the delay was another or it had gone astray.
    package var restartCount = 0

    /// Nothing found, nothing done.
    package init() {}
}
