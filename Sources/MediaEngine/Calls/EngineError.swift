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
    /// The call, the engine or the machine is not in a state in which this can be done.
    case state(Failure<StateFault>)

    /// What is not as it must be.
    public enum StateFault: Hashable, Sendable {
        /// The call has ended.
        case callEnded
        /// The engine has been shut down.
        case engineEnded
        /// The `StreamSource` or `StreamSink` has ended with the call that used it.
        case streamEnded
        /// The call is in another conference.
        case inConference
        /// The call is being recorded already.
        case recording
        /// What is asked was not agreed with the other side.
        case notAgreed
        /// A protocol was agreed on that calls do not have: secured media, RTP over TCP.
        case unknownTransport
        /// RTCP was agreed to have a port of its own, and the call's ports have none.
        case noControlPort
        /// More waits than fits.
        case queueFull
        /// The media thread does not run.
        case busy
        /// It is only possible in virtual time.
        case notVirtual
        /// The ports of the reservation are another call's, or released.
        case reservationUsed
        /// A filter of the application's does not fit where it is to go: other samples, or ports that are taken.
        case unsuitableFilter
        /// The microphone's signal cannot be processed as asked.
        case unsuitableProcessing
        /// The system has no room for another thread.
        case noThread
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
            case let error as VoiceProcessingError: .state(.unsuitableProcessing, error.message)
            case let error as GraphError: .state(.unsuitableFilter, error.message)
            case let error as DriverError: .state(.noThread, error.message)
            default: .state(.other, "\(error)")
            }
    }
}
