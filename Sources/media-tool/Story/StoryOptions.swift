import ArgumentParser

/// Where a story is written to.
struct StoryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Write down there how it went, step by step; see 'report'.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var story: String?

    /// Who writes it down; nil when nobody is to.
    ///
    /// `seed` is that of what happens in virtual time.
    func recorder(_ kind: String, _ parties: [String], seed: UInt64? = nil) -> StoryRecorder? {
        story.map { StoryRecorder(path: $0, kind: kind, parties: parties, seed: seed) }
    }
}

extension StoryRecorder? {
    /// Does what the story is about; where that fails, the failure is its outcome.
    func telling<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch {
            let failure = error as? ToolFailure ?? ToolFailure("\(error)")
            try self?.finish(
                callID: nil,
                status: failure.status,
                code: failure.code,
                reason: "none",
                failure: failure.description
            )
            throw error
        }
    }
}
