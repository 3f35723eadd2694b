public import CallBasics

/// Why the engine could not do what it was asked.
///
/// It carries the error of the part that failed, with its code; the message is that part's own, with its remedy.
public enum EngineError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A codec is unknown or cannot do what is asked.
    case codec(CodecError)
    /// A sound card is absent, busy or cannot do what is asked.
    case card(CardError)
    /// A socket could not be opened.
    case network(NetworkError)
    /// A file could not be read or written.
    case file(WAVError)
    /// A capture file could not be written.
    case capture(PcapError)
    /// A tone or digit does not exist.
    case tone(ToneError)
    /// The microphone's signal cannot be processed as asked.
    case voice(VoiceProcessingError)
    /// Filters could not be linked.
    case graph(GraphError)
    /// A thread could not be started.
    case driver(DriverError)
    /// The call or the engine is not in a state in which this can be done.
    case state(Failure<StateFault>)

    /// What is not as it must be.
    public enum StateFault: Hashable, Sendable {
        /// The call has ended.
        case callEnded
        /// The engine has been shut down.
        case engineEnded
        /// The `StreamSource` or `StreamSink` has ended with the call that used it.
        case streamEnded
        /// The call is being recorded already.
        case recording
        /// What is asked was not agreed with the other side.
        case notAgreed
        /// A protocol was agreed on that calls do not have: secured media, RTP over TCP.
        case unknownTransport
        /// More waits than fits.
        case queueFull
        /// The media thread does not run.
        case busy
        /// It is only possible in virtual time.
        case notVirtual
        /// The ports of the reservation are another call's, or released.
        case reservationUsed
        /// Another reason, which the message tells.
        case other
    }

    /// What failed, with values, and the remedy.
    public var description: String {
        switch self {
        case .codec(let error): error.message
        case .card(let error): error.message
        case .network(let error): error.message
        case .file(let error): error.message
        case .capture(let error): error.message
        case .tone(let error): error.message
        case .voice(let error): error.message
        case .graph(let error): error.message
        case .driver(let error): error.message
        case .state(let error): error.message
        }
    }

    static func state(_ fault: StateFault, _ message: String) -> EngineError { .state(Failure(fault, message)) }

    /// Runs `body`, and wraps what it throws.
    static func wrapping<Result>(_ body: () throws -> Result) throws(EngineError) -> Result {
        do {
            return try body()
        } catch {
            throw EngineError(error)
        }
    }

    /// As `wrapping`, for what suspends.
    static func wrappingAsync<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async throws(EngineError) -> Result {
        do {
            return try await body()
        } catch {
            throw EngineError(error)
        }
    }

    /// The engine's error for what one of its parts has thrown.
    init(_ error: any Error) {
        self =
            switch error {
            case let error as EngineError: error
            case let error as CodecError: .codec(error)
            case let error as CardError: .card(error)
            case let error as NetworkError: .network(error)
            case let error as WAVError: .file(error)
            case let error as PcapError: .capture(error)
            case let error as ToneError: .tone(error)
            case let error as VoiceProcessingError: .voice(error)
            case let error as GraphError: .graph(error)
            case let error as DriverError: .driver(error)
            default: .state(.other, "\(error)")
            }
    }
}
