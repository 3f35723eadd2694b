package import CallBasics

/// A connection to a server of TURN where it is not to be reached by datagrams: a port of this machine stands for the server.
///
/// When the connection has ended, an empty datagram comes from there.
/// Thread: any.
package protocol TURNCarrier: AnyObject, Sendable {
    /// Where this side sends what is for the server, and what the server sends comes from.
    var address: SocketAddress { get }
    /// Whether the server has taken the connection.
    var isConnected: Bool { get }
    /// Why there is none, as the end of a sentence; nil while there is, or may be.
    var failure: String? { get }
    /// Ends it in 1 s, so that what has been sent gets through.
    func close()
}
