package import CallBasics

/// A failure of a message bus, or of a service on it.
package typealias BusError = Failure<BusFault>

/// The kinds of `BusError`.
package enum BusFault: Hashable, Sendable {
    /// There is no session bus, or it does not let us in.
    case noBus
    /// The answer to a call is an error of this name, such as `org.freedesktop.DBus.Error.ServiceUnknown`.
    case refused(String)
    /// There was no answer in time.
    case timedOut
    /// The connection to the bus ended.
    case disconnected
    /// The bus sent what D-Bus does not have, or more than is taken.
    case protocolViolation
}
