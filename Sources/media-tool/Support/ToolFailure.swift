/// What a command failed with: one sentence, then the remedy.
struct ToolFailure: Error, CustomStringConvertible {
    /// What failed, with values, and the remedy.
    let description: String
    /// The word of reports for it.
    var status = "failed"
    /// The status of the answer that says so; nil where none did.
    var code: Int?
    /// Whether JSON that was printed says it already.
    var isReported = false

    init(_ description: String) {
        self.description = description
    }

    /// A failure of which a report has told.
    static func reported(_ description: String) -> ToolFailure {
        var failure = ToolFailure(description)
        failure.isReported = true
        return failure
    }

    /// The object that `--json` prints in the place of a result.
    var json: JSONValue {
        let end = description.indices.first { index in
            let next = description.index(after: index)
            guard ".?".contains(description[index]), next < description.endIndex, description[next] == " " else {
                return false
            }
            return description[description.index(after: next)...].first?.isUppercase ?? false
        }
        let split = end.map { description.index(after: $0) } ?? description.endIndex
        let remedy = description[split...].drop { $0 == " " }
        return [
            "error": [
                "status": .string(status), "code": code.map { .integer($0) } ?? .null,
                "message": .string(String(description[..<split])),
                "remedy": remedy.isEmpty ? .null : .string(String(remedy)),
            ]
        ]
    }
}
