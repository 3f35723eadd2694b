public import CallBasics
import Glibc

/// Why a socket could not be opened.
public typealias NetworkError = Failure<NetworkFault>

/// The kinds of `NetworkError`.
public enum NetworkFault: Hashable, Sendable {
    /// Another program, or another call, has the port.
    case portInUse
    /// The address is not one of this machine's, or not an address.
    case badAddress
    /// The system refused for another reason.
    case system
}

extension Failure<NetworkFault> {
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
}
