package import CallBasics

/// What speaks SIP: a user agent, or a server.
///
/// It stands between sockets, names and time on one side, and its user on the other.
///
///     sockets ──opened, failed, accept, bytes, datagram──►   ──poll──► open, send, close
///     names   ──answer──►                                    ──poll──► ask
///     time    ──timeout──►                                   ──deadline──► when to come again
///
/// After each input, `poll` until it is nil.
/// Thread: control. A copy is a snapshot.
package protocol SIPElement: Sendable {
    /// What it tells its user.
    associatedtype Event: Sendable

    /// When the input `timeout` is to come; nil when nothing waits for time.
    var deadline: MediaTime? { get }

    /// Says which own addresses others can be told for a transport.
    mutating func setLocalAddresses(_ addresses: [SocketAddress], of transport: Flow.Transport, at now: MediaTime)

    /// Takes a connection that somebody made to an own address; nil when there are too many: close it.
    mutating func accept(
        _ transport: Flow.Transport,
        local: SocketAddress,
        remote: SocketAddress,
        at now: MediaTime
    ) -> Flow?

    mutating func handle(_ input: ElementInput, at now: MediaTime)

    /// The machine slept, or the process stood still, for so long that others may have forgotten connections and bindings.
    mutating func handleAbsence(at now: MediaTime)

    /// The next thing to do; nil when all is done.
    mutating func poll() -> ElementOutput<Event>?
}

extension SIPElement {
    package mutating func handleAbsence(at now: MediaTime) {}
}

/// What comes to an element.
package enum ElementInput: Sendable {
    /// A connection that it asked for is there.
    case opened(Flow)
    /// A connection was refused or has ended, or a datagram could not be delivered.
    case failed(Flow)
    case bytes([UInt8], Flow)
    case datagram([UInt8], local: SocketAddress, remote: SocketAddress)
    case answer(DNSAnswer, to: DNSQuestion)
    /// Its deadline has come; before that it does nothing.
    case timeout
}

/// What an element wants done.
package enum ElementOutput<Event: Sendable>: Sendable {
    /// A connection is to be made to the flow's remote address, with TLS to a server of that name.
    case open(Flow, tlsName: String?)
    case send([UInt8], Flow)
    /// The connection is to be closed, once what was sent has left.
    case close(Flow)
    /// To be answered in any case, by `timeout` when nothing else comes.
    case ask(DNSQuestion)
    case event(Event)
}
