package import CallBasics
internal import NIOCore
internal import NIOPosix

/// Which own address leads to another.
package enum SourceAddress {
    /// The address that the kernel takes towards `remote`, without a port; nil when there is no way there.
    ///
    /// Nothing is sent.
    package static func towards(_ remote: CallBasics.SocketAddress) async -> CallBasics.SocketAddress? {
        do {
            let target = try remote.with(port: max(remote.port, 1)).forNIO
            let socket = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(to: target).get()
            let own = socket.localAddress?.known?.with(port: 0)
            try await socket.close()
            return own
        } catch {
            return nil
        }
    }
}
