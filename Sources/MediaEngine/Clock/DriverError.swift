public import CallBasics

/// Why a driver could not start.
public typealias DriverError = Failure<DriverFault>

/// The kinds of `DriverError`.
public enum DriverFault: Hashable, Sendable {
    /// The system has no room for another thread.
    case noThread
}
