package import CallBasics
internal import Glibc
internal import NIOCore

/// Why a socket could not be opened.
package typealias SIPSocketError = Failure<SIPSocketFault>

/// The kinds of `SIPSocketError`.
package enum SIPSocketFault: Hashable, Sendable {
    /// Another socket has the port.
    case portInUse
    /// The address is none of this machine's.
    case notLocal
    /// The port is for the administrator.
    case notAllowed
    case other
}

extension SIPSocketError {
    init(_ error: any Error, _ place: String) {
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE?: self.init(.portInUse, "\(place) is taken by another socket. Give another port, or none.")
        case EADDRNOTAVAIL?: self.init(.notLocal, "\(place) is no address of this machine. Give one that is.")
        case EACCES?: self.init(.notAllowed, "\(place) is not allowed. Give a port from 1024 on.")
        default: self.init(.other, "\(place) cannot be opened: \(error).")
        }
    }
}
