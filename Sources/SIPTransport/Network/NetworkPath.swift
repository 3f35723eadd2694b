package import CallBasics

/// The way by which packets leave for a server.
package struct NetworkPath: Hashable, Sendable {
    /// The own address that the kernel gives them, without a port.
    package let source: SocketAddress
    /// The number of the interface that they leave by.
    package let interface: UInt32

    package init(_ source: SocketAddress, by interface: UInt32) {
        (self.source, self.interface) = (source, interface)
    }
}

/// What has become of the way to a server.
package enum NetworkChange: Hashable, Sendable {
    /// There is another one.
    case changed(from: NetworkPath, to: NetworkPath)
    /// There is none any more.
    case lost(NetworkPath)
    /// There was none, and now there is one.
    case found(NetworkPath)

    /// The way that there is now; nil when there is none.
    package var path: NetworkPath? {
        switch self {
        case .changed(_, let path), .found(let path): path
        case .lost: nil
        }
    }

    /// What has become of `old`; nil when it is as it was.
    init?(from old: NetworkPath?, to new: NetworkPath?) {
        switch (old, new) {
        case (nil, nil): return nil
        case (nil, let new?): self = .found(new)
        case (let old?, nil): self = .lost(old)
        case (let old?, let new?):
            guard old != new else { return nil }
            self = .changed(from: old, to: new)
        }
    }
}
