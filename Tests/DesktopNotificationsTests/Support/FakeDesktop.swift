import BusSupport
import DesktopBus
import Dispatch
import Synchronization

@testable import DesktopNotifications

/// A service of notifications that keeps what it is asked to show.
final class FakeDesktop: Sendable {
    private let peer: BusPeer
    private let requests = Requests()

    init(_ bus: PrivateBus, capabilities: [String]) async throws {
        peer = try BusPeer(clientOf: bus.address) { [requests] in requests.answer($0, capabilities) }
        try peer.request(name: DesktopPresenter.service)
    }

    /// The arguments of each `Notify`.
    var notifications: [[BusValue]] { requests.notifications.withLock(\.self) }
    /// The numbers of what was to be closed.
    var closed: [UInt32] { requests.closed.withLock(\.self) }

    /// Has it answer no `Notify` until `release`.
    func hold() { requests.isHeld.withLock { $0 = true } }

    func release() {
        requests.isHeld.withLock { $0 = false }
        requests.released.signal()
    }

    func signal(_ member: String, _ body: [BusValue]) throws {
        try peer.signal(BusPeer.Signal(DesktopPresenter.path, DesktopPresenter.service, member, body))
    }

    /// Gives its name back, for the next one.
    func end() async throws {
        peer.release(name: DesktopPresenter.service)
        try await peer.end()
    }

    private final class Requests: Sendable {
        let notifications = Mutex<[[BusValue]]>([])
        let closed = Mutex<[UInt32]>([])
        let isHeld = Mutex(false)
        let released = DispatchSemaphore(value: 0)

        func answer(_ call: BusPeer.Call, _ capabilities: [String]) -> BusPeer.Answer {
            switch call.member {
            case "GetCapabilities":
                return .values([.strings(capabilities)])
            case "Notify":
                let count = notifications.withLock { all in
                    all.append(call.body)
                    return UInt32(all.count)
                }
                if isHeld.withLock(\.self) { released.wait() }
                return .values([.uint32(call.body[1].uint32.flatMap { $0 == 0 ? nil : $0 } ?? count)])
            case "CloseNotification":
                closed.withLock { $0 += call.body.compactMap(\.uint32) }
                return .values([])
            default:
                return .nothing
            }
        }
    }
}

extension PrivateBus {
    func presenter(records: String? = nil) async throws -> DesktopPresenter {
        try await DesktopPresenter.connect(applicationName: "Tests", environment: environment, records: records)
    }
}
