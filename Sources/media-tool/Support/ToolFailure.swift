/// A failure that only the tool can name; exit code 1.
struct ToolFailure: Error, CustomStringConvertible {
    /// What failed, with values, and the remedy.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
