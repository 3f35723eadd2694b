/// Words with numbers.
enum English {
    /// "1 packet", "2 packets".
    static func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
