internal import CallBasics

/// Why a trace file could not be read or written.
typealias TraceFileError = Failure<TraceFileFault>

/// The kinds of `TraceFileError`.
enum TraceFileFault: Hashable, Sendable {
    /// The system refused to open or write the file.
    case system
    /// The bytes are something else.
    case notATrace
    /// The file ends too early: whoever wrote it was killed, or it was copied in part.
    case truncated
    /// A later version of this tool has written it.
    case newer
    /// A value cannot be right.
    case damaged
    /// The file is larger than what is read at once.
    case tooLarge
}

extension TraceFileError {
    /// A failure of this kind, with its remedy.
    init(_ code: TraceFileFault, detail: String) {
        let message =
            switch code {
            case .system: detail
            case .notATrace: "This is no trace of a playout (\(detail)). Give a file that --trace has written."
            case .truncated:
                "The trace was cut off (\(detail)). Record it anew, and let the tool end by itself or by Ctrl-C."
            case .newer: "The trace is of a newer version (\(detail)). Use a newer media-tool."
            case .damaged: "The trace is damaged (\(detail)). Record it anew."
            case .tooLarge: "The trace is too large: \(detail). Record a shorter one."
            }
        self.init(code, message)
    }
}
