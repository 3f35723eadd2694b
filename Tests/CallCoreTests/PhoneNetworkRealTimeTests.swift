import CallBasics
@testable import CallCore
import Glibc
import MediaEngine
import SIP
import SIPTransport
import TestSupport
import Testing

/// Phones without a network for SIP, or for sound, and ones that wake theirs.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct PhoneNetworkRealTimeTests {
    private let engine: CallEngine

    init() throws { engine = try CallEngine() }

    private func phone(_ change: (inout PhoneConfiguration) -> Void = { _ in }) async throws -> Phone {
        try await .onLoopback(engine, change)
    }

    /// Whether there is a network for SIP, for sound, and for both.
    private func reachable(_ phone: Phone) async -> [Bool] {
        [await phone.isSIPReachable, await phone.isMediaReachable, await phone.isNetworkReachable]
    }

    private func close(_ phones: Phone...) async {
        for phone in phones { await phone.close() }
        await engine.shutDown()
    }

    @Test func `without a network for sound no call is made or answered, and those that are on stay where they are`()
        async throws
    {
        let (alice, bob) = (try await phone(), try await phone())
        let out = try await bob.call("sip:\(alice.localAddress)", CallConfiguration.buzz)
        var come: PhoneCall?
        for await case .incoming(let call) in alice.events {
            come = call
            break
        }
        let incoming = try #require(come)
        await alice.setMediaReachable(false)
        #expect(await reachable(alice) == [true, false, false])
        let refusal = await #expect(throws: PhoneError.self) { try await incoming.answer(CallConfiguration.buzz) }
        #expect(refusal?.code == .noNetwork)
        let unmade = await #expect(throws: PhoneError.self) { try await alice.call("sip:\(bob.localAddress)") }
        #expect(unmade?.code == .noNetwork)
        await alice.setMediaReachable(true)
        try await incoming.answer(CallConfiguration.buzz)
        try await out.answered()
        #expect(await Polling.eventually { await incoming.media?.report().received.packets ?? 0 > 0 })

        // Bob moves, and his sound does not, until there is a network for it.
        await bob.setMediaReachable(false)
        await bob.move(to: try #require(SocketAddress(host: "127.0.0.2", port: 0)))
        #expect(bob.localAddress.host == "127.0.0.2")
        #expect(await incoming.media?.agreement.remote?.host == "127.0.0.1")
        await bob.setMediaReachable(true)
        #expect(await Polling.eventually { await incoming.media?.agreement.remote?.host == "127.0.0.2" })
        let before = await incoming.media?.report().received.packets ?? 0
        #expect(await Polling.eventually { await incoming.media?.report().received.packets ?? 0 > before + 25 })
        await out.hangUp()
        #expect(await incoming.ended().side == .them)
        await close(alice, bob)
    }

    @Test func `without a network for SIP accounts say so, and sound flows on`() async throws {
        let server = SIPEndpoint(SIPServer(ServerConfiguration(domain: "example.test"), seed: 3)) { _ in .failure }
        let way = "sip:\(try await server.open(at: .loopback(port: 0), [.udp]));lr"
        let alice = try await phone()
        var account = try PhoneAccount("sip:alice@example.test")
        account.proxies = [way]
        try await alice.register(account)
        await alice.setSIPReachable(false)
        #expect(await reachable(alice) == [false, true, false])
        for await case .unregistered(let address, let error) in alice.events {
            #expect(address == "sip:alice@example.test" && error.code == .noNetwork)
            break
        }
        // What is said of both counts for both.
        await alice.setNetworkReachable(false)
        #expect(await reachable(alice) == [false, false, false])
        await alice.setNetworkReachable(true)
        #expect(await reachable(alice) == [true, true, true])
        for await case .registered in alice.events { break }
        await close(alice)
        await server.close()
    }

    @Test(arguments: [false, true])
    func `a phone that wakes its network connects to its servers when it comes to the foreground`(wakes: Bool)
        async throws
    {
        let listener = try Listener()
        let alice = try await phone {
            $0.transports = [.udp]
            $0.wakesNetwork = wakes
        }
        var account = try PhoneAccount("sip:alice@127.0.0.1:\(listener.port)")
        account.expires = 60
        let wanted = account
        // Nobody answers: the network sleeps.
        let registering = Task { try? await alice.register(wanted) }
        #expect(await Polling.eventually { await alice.accounts.count == 1 })
        await alice.enterForeground()
        let bytes = listener.next(within: wakes ? 5000 : 300)
        #expect(bytes == (wakes ? Array("\r\n\r\n".utf8) : nil))
        await close(alice)
        await registering.value
    }

    /// A port of TCP that takes what comes.
    private final class Listener: Sendable {
        let port: UInt16
        private let socket: Int32

        init() throws {
            socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let socket = socket
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bytes in
                    bind(socket, bytes, length) == 0 && listen(socket, 4) == 0
                        && getsockname(socket, bytes, &length) == 0
                }
            }
            try #require(isBound)
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { Glibc.close(socket) }

        /// What the next connection brings to its end; nil when none comes.
        func next(within milliseconds: Int32) -> [UInt8]? {
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, milliseconds) == 1 else { return nil }
            let connection = accept(socket, nil, nil)
            defer { Glibc.close(connection) }
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while read(connection, &byte, 1) == 1 { bytes.append(byte) }
            return bytes
        }
    }
}
