package import CallBasics
internal import NIOCore

/// The addresses of the machine.
package enum InterfaceAddresses {
    /// The addresses that a wildcard stands for, with its port; loopback comes last.
    ///
    /// - Throws: `IOError` when the kernel does not tell them
    package static func all(of wildcard: CallBasics.SocketAddress) throws -> [CallBasics.SocketAddress] {
        let found = try System.enumerateDevices().compactMap { device in
            device.address?.known?.with(port: wildcard.port)
        }
        let fitting = found.filter { $0.isIPv4 == wildcard.isIPv4 && !$0.isLinkLocal }
        return fitting.filter { !$0.isLoopback } + fitting.filter(\.isLoopback)
    }
}
