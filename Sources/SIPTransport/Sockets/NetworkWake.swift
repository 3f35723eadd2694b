internal import NIOCore
internal import NIOPosix

/// Has a network come up that the machine opens on demand, as mobile data: by a connection that serves for nothing else.
package enum NetworkWake {
    /// How long the connection may take.
    private static let patience = TimeAmount.seconds(5)

    /// Connects by TCP, writes an empty line of SIP, which servers pass over (RFC 5626, section 4.4.1), and closes.
    ///
    /// Whatever comes of it: that something left the machine is all that is wanted.
    package static func touch(_ host: String, port: UInt16) async {
        do {
            let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(patience)
            let channel = try await bootstrap.connect(host: host, port: Int(port)).get()
            try await channel.writeAndFlush(ByteBuffer(string: "\r\n\r\n")).get()
            try await channel.close().get()
        } catch {
            // The server may be away, or take no TCP.
        }
    }
}
