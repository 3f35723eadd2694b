import Logging
import Synchronization

/// Keeps what is logged.
final class LogCapture: Sendable {
    private let captured = Mutex<[String]>([])
    var lines: [String] { captured.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(capture: self) } }

    func append(_ line: String) { captured.withLock { $0.append(line) } }

    private struct Handler: LogHandler {
        let capture: LogCapture
        var logLevel = Logger.Level.info
        var metadata = Logger.Metadata()

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            capture.append("\(event.message)")
        }
    }
}
