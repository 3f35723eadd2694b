import CallBasics
import Foundation
import Glibc
import TestSupport
import Testing

@testable import SIPTransport

/// The kernel's own messages: of this machine, and of a network that the tests make and change.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct NetworkWatcherRealTimeTests {
    private static func address(_ host: String) throws -> SocketAddress {
        try #require(SocketAddress(host: host, port: 0))
    }

    // MARK: This machine

    @Test func `the way to this machine is found, and the streams end with the watcher`() async throws {
        let watcher = try NetworkWatcher()
        var streams = [watcher.changes(towards: .loopback(port: 5060)), watcher.changes(towards: .loopback(port: 1))]
            .map { $0.makeAsyncIterator() }
        for index in streams.indices {
            let change = await streams[index].next()
            guard case .found(let path)? = change else {
                Issue.record("it told \(String(describing: change))")
                continue
            }
            #expect(path.source == .loopback(port: 0) && path.interface > 0)
        }
        watcher.close()
        for index in streams.indices { #expect(await streams[index].next() == nil) }
        // Who comes later is sent away.
        for await change in watcher.changes(towards: .loopback(port: 1)) { Issue.record("it told \(change)") }
    }

    @Test func `it ends with its last reference`() async throws {
        var watcher: NetworkWatcher? = try NetworkWatcher()
        var changes = try #require(watcher).changes(towards: .loopback(port: 5060)).makeAsyncIterator()
        #expect(await changes.next() != nil)
        watcher = nil
        #expect(await changes.next() == nil)
    }

    // MARK: A network of the tests

    @Test(.namespaces) func `routes, addresses, cables and interfaces are followed`() async throws {
        // a0 and c0 are interfaces with a cable each, whose other ends are b0 and d0; the better way is by c0, once there is one.
        let (network, watcher) = try await NetworkNamespace.make { try NetworkWatcher() }
        try network.ip(
            """
            link add a0 type veth peer name b0; link add c0 type veth peer name d0
            link set a0 up; link set b0 up; link set c0 up; link set d0 up
            address add 192.0.2.1/24 dev a0; address add 198.51.100.1/24 dev c0
            route add default via 192.0.2.9 dev a0 metric 200
            """
        )
        let server = try #require(SocketAddress(host: "203.0.113.5", port: 5060))
        var changes = watcher.changes(towards: server).makeAsyncIterator()
        guard case .found(let first)? = await changes.next() else { throw NetworkNamespace.Unexpected() }
        #expect(try first.source == Self.address("192.0.2.1"))

        // What changes nothing is told by nothing: the next change follows.
        try network.ip("address add 192.0.2.77/24 dev a0; address del 192.0.2.77/24 dev a0; link set b0 mtu 1400")
        try network.ip("route add default via 198.51.100.9 dev c0 metric 100")
        guard case .changed(first, let second)? = await changes.next() else { throw NetworkNamespace.Unexpected() }
        #expect(try second.source == Self.address("198.51.100.1") && second.interface != first.interface)

        try network.ip("address del 198.51.100.1/24 dev c0")
        #expect(await changes.next() == .changed(from: second, to: first))
        try network.ip("link set b0 down")
        #expect(await changes.next() == .lost(first))
        try network.ip("link set b0 up")
        #expect(await changes.next() == .found(first))
        try network.ip("link set a0 down")
        #expect(await changes.next() == .lost(first))
        try network.ip("link set a0 up; route add default via 192.0.2.9 dev a0")
        #expect(await changes.next() == .found(first))
        try network.ip("link del a0")
        #expect(await changes.next() == .lost(first))
        watcher.close()
        #expect(await changes.next() == nil)
    }

    @Test(.namespaces) func `so is IPv6, with addresses of one link`() async throws {
        let (network, watcher) = try await NetworkNamespace.make { try NetworkWatcher() }
        try network.ip(
            """
            link add a0 type veth peer name b0; link set a0 addrgenmode none; link set b0 up; link set a0 up
            address add 2001:db8::1/64 dev a0 nodad; address add fe80::1/64 dev a0 nodad
            """
        )
        var changes = watcher.changes(towards: try Self.address("2001:db8::9")).makeAsyncIterator()
        guard case .found(let path)? = await changes.next() else { throw NetworkNamespace.Unexpected() }
        #expect(try path.source == Self.address("2001:db8::1"))
        let neighbour = try Self.address("fe80::9%\(path.interface)")
        var others = watcher.changes(towards: neighbour).makeAsyncIterator()
        let own = NetworkPath(try Self.address("fe80::1%\(path.interface)"), by: path.interface)
        #expect(await others.next() == .found(own))
        try network.ip("address del 2001:db8::1/64 dev a0")
        #expect(await changes.next() == .lost(path))
        try network.ip("address del fe80::1/64 dev a0")
        #expect(await others.next() == .lost(own))
    }

    @Test(.namespaces) func `a socket that is full tells of its loss`() async throws {
        let (network, socket) = try await NetworkNamespace.make { try RouteSocket(.all) }
        var (size, buffer): (CInt, [UInt8]) = (1, [UInt8](repeating: 0, count: RouteSocket.byteCount))
        // The kernel takes the least that it allows, which is less than two messages of links.
        setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        try network.ip("link add a0 type veth peer name b0; link set a0 up; link set b0 up; link del a0")
        var messages: [RouteMessage] = []
        while case .messages(let more) = socket.receive(&buffer) { messages += more }
        #expect(messages.contains(.overrun))
    }

    @Test(.namespaces) func `what others than the kernel send does not count`() async throws {
        let (_, sockets) = try await NetworkNamespace.make { (try RouteSocket(.all), try RouteSocket()) }
        var target = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        // A message that would be an overrun: its head alone.
        let message: [UInt8] = withUnsafeBytes(of: (UInt32(16), UInt16(4), UInt16(0), UInt64(0))) { Array($0) }
        let sent = withUnsafeMutablePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(sockets.0.descriptor, address, &length)
                return sendto(sockets.1.descriptor, message, message.count, 0, address, length)
            }
        }
        var (buffer, messages) = ([UInt8](repeating: 0, count: RouteSocket.byteCount), [RouteMessage]())
        var datagramCount = 0
        while case .messages(let more) = sockets.0.receive(&buffer) {
            datagramCount += 1
            messages += more
        }
        #expect(sent == 16 && datagramCount == 1 && messages.isEmpty)
    }
}
