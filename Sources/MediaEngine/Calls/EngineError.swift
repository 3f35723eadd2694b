/// Why the engine could not do what it was asked.
///
/// It carries the error of the part that failed; the message is that part's own, with its remedy.
public enum EngineError: Error, Sendable, CustomStringConvertible {
    /// A codec is unknown or cannot do what is asked.
    case codec(CodecError)
    /// A sound card is absent, busy or cannot do what is asked.
    case card(CardError)
    /// A socket could not be opened.
    case network(NetworkError)
    /// A file could not be read or written.
    case file(WAVError)
    /// A tone or digit does not exist.
    case tone(ToneError)
    /// Filters could not be linked.
    case graph(GraphError)
    /// A thread could not be started.
    case driver(DriverError)
    /// The call or the engine is not in a state in which this can be done.
    case state(String)

    /// What failed, with values, and the remedy.
    public var description: String {
        switch self {
        case .codec(let error): "\(error)"
        case .card(let error): "\(error)"
        case .network(let error): "\(error)"
        case .file(let error): "\(error)"
        case .tone(let error): "\(error)"
        case .graph(let error): "\(error)"
        case .driver(let error): "\(error)"
        case .state(let message): message
        }
    }

    /// Runs `body`, and wraps what it throws.
    static func wrapping<Result>(_ body: () throws -> Result) throws(EngineError) -> Result {
        do {
            return try body()
        } catch let error as EngineError {
            throw error
        } catch let error as CodecError {
            throw .codec(error)
        } catch let error as CardError {
            throw .card(error)
        } catch let error as NetworkError {
            throw .network(error)
        } catch let error as WAVError {
            throw .file(error)
        } catch let error as ToneError {
            throw .tone(error)
        } catch let error as GraphError {
            throw .graph(error)
        } catch let error as DriverError {
            throw .driver(error)
        } catch {
            throw .state("\(error)")
        }
    }
}
