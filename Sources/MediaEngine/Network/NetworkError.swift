import Glibc

/// Why a socket could not be opened.
public struct NetworkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
        /// Another program, or another call, has the port.
        case portInUse
        /// The address is not one of this machine's, or not an address.
        case badAddress
        /// The system refused for another reason.
        case system
    }

    /// The kind of failure.
    public let code: Code
    /// What failed and the remedy.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    init(_ what: String, address: SocketAddress, errno code: Int32) {
        let reason = String(cString: strerror(code))
        switch code {
        case EADDRINUSE:
            self.init(
                .portInUse,
                "UDP port \(address.port) of \(address.host) is in use. Choose another port, or end what has it "
                    + "(`ss -ulpn` names it)."
            )
        case EADDRNOTAVAIL:
            self.init(
                .badAddress,
                "\(address.host) is no address of this machine. Bind to 0.0.0.0 or [::], or to one that `ip addr` shows."
            )
        case EACCES:
            self.init(.system, "UDP port \(address.port) is reserved (\(reason)). Choose a port above 1023.")
        default:
            self.init(.system, "\(what) on \(address) failed: \(reason).")
        }
    }

    /// The message.
    public var description: String { message }
}
