import CallBasics
import Synchronization

@testable import MediaTransport

/// A connection to a server of TURN as a test says.
final class TestCarrier: TURNCarrier {
    let address: SocketAddress
    private let connected = Atomic(false)
    private let closed = Atomic(false)
    private let reason = Mutex<String?>(nil)

    init(at address: SocketAddress) { self.address = address }

    var failure: String? {
        get { reason.withLock { $0 } }
        set { reason.withLock { $0 = newValue } }
    }

    var isConnected: Bool {
        get { connected.load(ordering: .relaxed) }
        set { connected.store(newValue, ordering: .relaxed) }
    }

    var isClosed: Bool { closed.load(ordering: .relaxed) }

    func close() { closed.store(true, ordering: .relaxed) }
}
