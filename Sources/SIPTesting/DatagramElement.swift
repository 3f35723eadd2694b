package import CallBasics
package import SIP

/// An element of a test that speaks by datagrams alone, and waits for no time.
package protocol DatagramElement: SIPElement {
    /// The address that it was opened at.
    var own: SocketAddress { get set }
    /// What it wants done, the oldest first.
    var outputs: [ElementOutput<Event>] { get set }
}

extension DatagramElement {
    package var deadline: MediaTime? { nil }

    package mutating func setLocalAddresses(
        _ addresses: [SocketAddress],
        of transport: Flow.Transport,
        at now: MediaTime
    ) {
        own = addresses.first ?? own
    }

    package mutating func accept(
        _ transport: Flow.Transport,
        local: SocketAddress,
        remote: SocketAddress,
        at now: MediaTime
    ) -> Flow? { nil }

    package mutating func poll() -> ElementOutput<Event>? { outputs.isEmpty ? nil : outputs.removeFirst() }
}
