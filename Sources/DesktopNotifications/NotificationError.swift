public import CallBasics
internal import DesktopBus

/// A failure to show a notification.
public typealias NotificationError = Failure<NotificationFault>

/// The kinds of `NotificationError`.
public enum NotificationFault: Hashable, Sendable {
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

extension NotificationError {
    /// What a bus failed with, as a failure to show something.
    init(_ error: BusError) {
        let code: NotificationFault =
            switch error.code {
            case .noBus: .noBus
            case .refused: .refused
            case .timedOut: .timedOut
            case .disconnected: .disconnected
            case .protocolViolation: .protocolViolation
            }
        self.init(code, error.message)
    }
}
