package import CallCore

/// Calls that do nothing of what a screen wants, and tell that they were asked.
package actor IdleCalls: ScreenedCalls {
    /// Each time that a screen wants something done.
    package nonisolated let asked: AsyncStream<Void>
    private let ask: AsyncStream<Void>.Continuation

    package init() { (asked, ask) = AsyncStream.makeStream() }

    package func perform(_ transaction: [ProviderAction]) { ask.yield(()) }
    package func activateAudio() {}
    package func deactivateAudio() {}
    package func resetCalls() {}
    package func receive(_ push: PushPayload) -> CallUUID? { nil }
    package func note(_ uuid: CallUUID, _ refusal: CallRefusal?) {}
    package func handleDeskTimeout() {}
}
