/// What `doctor` found out about one thing, and what to do about it.
struct Finding {
    /// How good it is.
    enum Status: String {
        /// As it should be.
        case ok
        /// Calls work, but worse than they could, or without something.
        case warning
        /// Calls do not work.
        case failure
    }

    /// What was looked at: "cards".
    let area: String
    let status: Status
    /// What was found, with values.
    let finding: String
    /// What to do; nil when there is nothing to do.
    var remedy: String?

    var json: JSONValue {
        [
            "area": .string(area),
            "status": .string(status.rawValue),
            "finding": .string(finding),
            "remedy": JSONValue(remedy),
        ]
    }

    /// The finding as lines of text.
    var text: String {
        let label = status == .ok ? "ok     " : status == .warning ? "warning" : "FAILURE"
        return "\(label)  \(area): \(finding)\n" + (remedy.map { "         \($0)\n" } ?? "")
    }
}
