/// One line on a terminal that says how far long work has come; nothing where nobody watches.
struct ProgressLine {
    private let total: Double?
    private var shown = -1

    /// Progress towards `total` seconds; nil when the end is not known.
    init(total: Double?) {
        self.total = total
    }

    /// Shows that `seconds` are done, once per second.
    mutating func show(_ seconds: Double) {
        guard StandardError.isTerminal, Int(seconds) != shown else { return }
        shown = Int(seconds)
        StandardError.showProgress("\(shown)\(total.map { " of \(Int($0.rounded(.up)))" } ?? "") s ")
    }

    /// Takes the line away.
    func clear() { StandardError.clearProgress() }
}
