package import CallBasics

/// A failure of the mailbox: its server, a line of its file, or a connection to it.
package typealias MailboxError = Failure<MailboxFault>

/// The kinds of `MailboxError`.
package enum MailboxFault: Hashable, Sendable {
    /// The server's address cannot be listened on.
    case cannotListen
    /// A post, or a line of a file of posts, is wrong.
    case invalidPost
    /// No connection to the server could be made.
    case unreachable
    /// The system does not let a connection be made, now or later.
    case cannotConnect
    /// The connection to the server ended.
    case disconnected
    /// The other side sent what the protocol does not have.
    case protocolViolation
    /// The server refused a request.
    case refused
}

extension MailboxError {
    /// Whether the same may succeed later, over another connection.
    var isTransient: Bool { code == .unreachable || code == .disconnected }
}
