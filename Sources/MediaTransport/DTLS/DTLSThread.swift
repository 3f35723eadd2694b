import CallBasics
internal import MediaEngine
import Synchronization

/// Who serves legs when something has come for them, or their time has.
protocol HandshakeServer: Sendable {
    /// Serves `leg` from now on; answers false when that cannot be.
    func add(_ leg: DTLSLeg) -> Bool
    /// Forgets `leg`.
    func remove(_ leg: DTLSLeg)
    /// Has all legs look at what has come.
    ///
    /// Thread: any, media too.
    func wake()
}

/// The thread that answers DTLS for all legs of the process, so that no handshake touches a tick.
///
/// It sleeps while nothing comes and no datagram is to be sent again, and lasts as long as the process.
final class DTLSThread: HandshakeServer {
    static let shared = DTLSThread()

    private struct State {
        var legs: [ObjectIdentifier: DTLSLeg] = [:]
        var isRunning = false
    }

    private let state = Mutex(State())
    private let sleeper = Sleeper()

    /// Serves `leg` from now on; answers false when the system has no room for the thread.
    ///
    /// Thread: any.
    func add(_ leg: DTLSLeg) -> Bool {
        let isServed = state.withLock { state in
            if !state.isRunning { state.isRunning = BlockingWork.startThread { [self] in run() } }
            if state.isRunning { state.legs[ObjectIdentifier(leg)] = leg }
            return state.isRunning
        }
        wake()
        return isServed
    }

    /// Forgets `leg`.
    ///
    /// Thread: any.
    func remove(_ leg: DTLSLeg) { _ = state.withLock { $0.legs.removeValue(forKey: ObjectIdentifier(leg)) } }

    /// Has all legs look at what has come.
    ///
    /// Thread: any, media too.
    func wake() { sleeper.wake() }

    private func run() {
        var buffer = [UInt8](repeating: 0, count: DatagramPipe.maximumByteCount)
        while true {
            let legs = state.withLock { Array($0.legs.values) }
            let now = MonotonicClock.current
            let next = legs.compactMap { $0.serve(at: now, &buffer) }.min()
            if let next { sleeper.sleep(untilWokenOr: next) } else { sleeper.rest() }
        }
    }
}
