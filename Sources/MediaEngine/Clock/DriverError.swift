package import CallBasics

/// Why a driver could not start.
package typealias DriverError = Failure<DriverFault>

/// The kinds of `DriverError`.
package enum DriverFault: Hashable, Sendable {
    /// The system has no room for another thread.
    case noThread
}
