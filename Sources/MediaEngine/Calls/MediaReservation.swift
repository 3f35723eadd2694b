public import CallBasics
import Synchronization

/// Ports that are open for a call which is still to be agreed on: an offer needs them before a codec is known.
///
/// The first call that is made with it takes them over and closes them when it ends; without one, the reservation does,
/// when it is released or nobody holds it any more.
public final class MediaReservation: Sendable {
    /// Where the other side's RTP must go.
    public let localAddress: SocketAddress
    /// Where its RTCP must go when RTP and RTCP do not share one port.
    public let localControlAddress: SocketAddress?

    private struct State {
        var sockets: CallSockets?
        var isReleased = false
    }

    private let state: Mutex<State>

    init(_ sockets: CallSockets) {
        localAddress = sockets.local
        localControlAddress = sockets.localControl
        state = Mutex(State(sockets: sockets))
    }

    /// Closes the ports, unless a call has them; if that comes about in vain, they are closed then.
    public func release() {
        state.withLock { $0 = State(isReleased: true) }
    }

    /// Does `body` with the sockets; no call takes them meanwhile, and they are nil when one has them.
    func withSockets<Result>(_ body: (_ media: UDPSocket?, _ control: UDPSocket?) -> Result) -> Result {
        state.withLock { body($0.sockets?.link as? UDPSocket, $0.sockets?.controlLink as? UDPSocket) }
    }

    /// The ports, once.
    func take() throws(EngineError) -> CallSockets {
        guard let sockets = state.withLock({ $0.sockets.take() }) else {
            throw .state(
                .reservationUsed,
                "The ports of \(localAddress) are another call's, or released. Reserve others."
            )
        }
        return sockets
    }

    /// Takes the ports back from a call that could not be made.
    func giveBack(_ sockets: CallSockets) {
        state.withLock { if !$0.isReleased { $0.sockets = sockets } }
    }
}
