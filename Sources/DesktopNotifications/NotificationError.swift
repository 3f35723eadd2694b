/// A failure to show a notification.
public struct NotificationError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Sendable, Hashable {
        /// There is no session bus, or it does not let us in.
        case noBus
        /// The desktop did not show it.
        case refused
        /// There was no answer in time.
        case timedOut
        /// The connection to the bus ended.
        case disconnected
        /// The bus sent what D-Bus does not have, or more than is taken.
        case protocolViolation
        /// What is known of earlier notifications cannot be kept.
        case records
    }

    /// What kind of failure it is.
    public let code: Code
    /// What failed, with values, then the remedy.
    public let message: String

    /// What failed, with values, then the remedy.
    public var description: String { message }

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
