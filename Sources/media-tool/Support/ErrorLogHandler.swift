internal import Glibc
import Logging

/// Logs to standard error, a line each, in which nothing that others have said can steer the terminal.
struct ErrorLogHandler: LogHandler {
    let label: String
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    init(label: String, logLevel: Logger.Level) {
        self.label = label
        self.logLevel = logLevel
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { StandardError.write("\(Self.now()) \(text(of: event))\n") }

    /// The line without its time.
    func text(of event: LogEvent) -> String {
        var metadata = metadata.merging(event.metadata ?? [:]) { $1 }
        if let error = event.error { metadata["error"] = "\(error)" }
        let fields = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        return "\(event.level) \(label):\(fields) \(event.message)".printable
    }

    /// The time of day, as ISO 8601 writes it.
    private static func now() -> String {
        var seconds = time(nil)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "" }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            guard let base = buffer.baseAddress, strftime(base, 64, "%Y-%m-%dT%H:%M:%S%z", &parts) > 0 else {
                return ""
            }
            return String(cString: base)
        }
    }
}
