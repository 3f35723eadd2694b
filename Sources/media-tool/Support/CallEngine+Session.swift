import MediaEngine

extension CallEngine {
    /// Makes an engine for `body`, and ends it afterwards, whatever came of it.
    ///
    /// - Throws: `EngineError` when there is no engine to be had, and what `body` throws.
    static func session<Result>(
        _ configuration: CallEngineConfiguration,
        _ body: (CallEngine) async throws -> Result
    ) async throws -> Result {
        let engine = try CallEngine(configuration)
        do {
            let result = try await body(engine)
            await engine.shutDown()
            return result
        } catch {
            await engine.shutDown()
            throw error
        }
    }
}
