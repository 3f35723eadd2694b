/// A failure of the mailbox: its server, a line of its file, or a connection to it.
package struct MailboxError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    package enum Code: Sendable, Hashable {
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

    /// What kind of failure it is.
    package let code: Code
    /// What failed, with values, then the remedy.
    package let message: String
    /// The failure behind this one.
    package let cause: (any Error)?

    /// What failed, with values, then the remedy.
    package var description: String { message }

    /// Whether the same may succeed later, over another connection.
    var isTransient: Bool { code == .unreachable || code == .disconnected }

    init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}
