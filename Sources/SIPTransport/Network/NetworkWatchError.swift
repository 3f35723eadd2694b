package import CallBasics
internal import Glibc

/// Why the network cannot be watched.
package typealias NetworkWatchError = Failure<NetworkWatchFault>

/// What a watcher of the network lacks.
package enum NetworkWatchFault: Hashable, Sendable {
    case unavailable
}

extension NetworkWatchError {
    init(_ code: Int32) {
        let remedy =
            switch code {
            case EMFILE, ENFILE: "Close some descriptors, or raise the limit (`ulimit -n`)."
            case EAGAIN: "End some threads, or raise the limit (`ulimit -u`)."
            default: "Allow sockets of AF_NETLINK where the program is confined."
            }
        self.init(.unavailable, "The network cannot be watched: \(String(cString: strerror(code))). \(remedy)")
    }
}
