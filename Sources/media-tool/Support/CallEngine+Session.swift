import MediaEngine

extension CallEngine {
    /// Makes an engine for `body`, and ends it afterwards, whatever came of it.
    ///
    /// Cards that go and come back meanwhile are told on standard error.
    ///
    /// - Throws: `EngineError` when there is no engine to be had, what `body` throws, and `ToolFailure` after it when a card
    ///   went, so that sound is missing.
    static func session<Result>(
        _ configuration: CallEngineConfiguration,
        _ body: (CallEngine) async throws -> Result
    ) async throws -> Result {
        let engine = try CallEngine(configuration)
        let watch = CardWatch()
        let watching = Task {
            for await event in engine.events {
                if case .card(let event) = event { watch.note(event) }
            }
        }
        do {
            let result = try await body(engine)
            let end = engine.now
            await engine.shutDown()
            await watching.value
            if let failure = watch.failure(at: end) { throw failure }
            return result
        } catch {
            await engine.shutDown()
            await watching.value
            throw error
        }
    }
}
