import CallBasics
@testable import CallCore
import Foundation
import Glibc
import MediaEngine
import Synchronization
import TestSupport
import Testing

/// Phones whose sound is secured by keys that DTLS makes, over sockets of 127.0.0.1.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SecuredPhoneRealTimeTests {
    private let engine: CallEngine

    init() throws { engine = try CallEngine() }

    private func phone(_ encryption: MediaEncryption) async throws -> Phone {
        try await .onLoopback(engine) { $0.mediaEncryption = encryption }
    }

    private func answered(_ phone: Phone) async throws -> PhoneCall {
        for await event in phone.events {
            guard case .incoming(let call) = event else { continue }
            try await call.answer(CallConfiguration.buzz)
            return call
        }
        throw PhoneError(.state, "No call has come.")
    }

    private func close(_ phones: Phone...) async {
        for phone in phones { await phone.close() }
        await engine.shutDown()
    }

    @Test func `a call by DTLS has sound both ways, goes on over a hold, and ends as any other`() async throws {
        let (alice, bob) = (try await phone(.dtls), try await phone(.dtls))
        let out = try await alice.call("sip:\(bob.localAddress)", CallConfiguration.buzz)
        let come = try await answered(bob)
        try await out.answered()
        func hasHeard(_ count: Int) async -> Bool {
            await Polling.eventually {
                for call in [out, come] where await call.media?.report().received.packets ?? 0 < count { return false }
                return true
            }
        }
        #expect(await hasHeard(10))
        await out.setHeld(true)
        #expect(await Polling.eventually { await come.state == .heldRemotely })
        await out.setHeld(false)
        #expect(await Polling.eventually { await come.state == .talking })
        let count = await max(out.media?.report().received.packets ?? 0, come.media?.report().received.packets ?? 0)
        #expect(await hasHeard(count + 10))
        await out.hangUp()
        #expect(await out.ended().cause == .hungUp)
        #expect(await come.ended().cause == .hungUp)
        await close(alice, bob)
    }

    @Test(arguments: [MediaEncryption.none, .sdes])
    func `a call that is secured otherwise is refused, from either side`(other: MediaEncryption) async throws {
        let (alice, bob) = (try await phone(.dtls), try await phone(other))
        for (caller, callee) in [(alice, bob), (bob, alice)] {
            let out = try await caller.call("sip:\(callee.localAddress)", CallConfiguration.buzz)
            #expect(await out.ended().cause == .refused(status: 488))
            #expect(await callee.currentCalls.isEmpty)
        }
        await close(alice, bob)
    }

    @Test(arguments: [MediaEncryption.none, .sdes, .dtls, .preferred])
    func `who prefers SRTP has what the other side has, from either side`(other: MediaEncryption) async throws {
        let (alice, bob) = (try await phone(.preferred), try await phone(other))
        for (caller, callee) in [(alice, bob), (bob, alice)] {
            let out = try await caller.call("sip:\(callee.localAddress)", CallConfiguration.buzz)
            // It rings once, for what can be taken.
            let come = try await answered(callee)
            try await out.answered()
            for call in [out, come] {
                #expect(await call.encryption == (other == .preferred ? .dtls : other))
                #expect(await Polling.eventually { await call.media?.report().received.packets ?? 0 > 5 })
            }
            // What it began with it goes on with.
            await out.setHeld(true)
            #expect(await Polling.eventually { await come.state == .heldRemotely })
            await out.setHeld(false)
            #expect(await Polling.eventually { await come.state == .talking })
            for call in [out, come] {
                #expect(await call.encryption == (other == .preferred ? .dtls : other))
                let count = await call.media?.report().received.packets ?? 0
                #expect(await Polling.eventually { await call.media?.report().received.packets ?? 0 > count })
            }
            await out.hangUp()
            #expect(await come.ended().cause == .hungUp)
        }
        await close(alice, bob)
    }

    @Test func `a call through somebody who changes the fingerprint ends, and says so`() async throws {
        let (alice, bob) = (try await phone(.dtls), try await phone(.dtls))
        let middle = try Middle(to: bob.localAddress)
        let out = try await alice.call("sip:\(middle.address)", CallConfiguration.buzz)
        let come = try await answered(bob)
        let end = await out.ended()
        #expect(end.side == .us && end.cause == .failed)
        #expect(end.description.contains("Somebody may be in between"), "\(end)")
        #expect(await come.ended().cause != .cancelled)
        for report in await [out.report, come.report] { #expect(report?.legs.first?.received.packets ?? 0 == 0) }
        middle.stop()
        await close(alice, bob)
    }
}

/// A proxy that passes messages on, and tells who calls another certificate than that of who is called.
private final class Middle: Sendable {
    let address: SocketAddress
    private let isOver = Atomic(false)

    init(to callee: SocketAddress) throws {
        let socket = try Self.socket()
        address = socket.localAddress
        Thread.detachNewThread { [self] in
            var caller: SocketAddress?
            while !isOver.load(ordering: .acquiring) {
                var buffer = [UInt8](repeating: 0, count: 8192)
                var span = buffer.mutableSpan
                guard let datagram = socket.receive(into: &span, at: MonotonicClock.current) else {
                    pass(.milliseconds(1))
                    continue
                }
                let message = Array(buffer[..<datagram.byteCount])
                if datagram.source == callee {
                    if let caller { socket.send(Self.changed(message).span, to: caller, at: .zero) }
                } else {
                    caller = datagram.source
                    socket.send(message.span, to: callee, at: .zero)
                }
            }
        }
    }

    func stop() { isOver.store(true, ordering: .releasing) }

    /// One at whose port nobody takes TCP: a request of this size goes by that first.
    private static func socket() throws -> UDPSocket {
        while true {
            let socket = try UDPSocket(bind: .loopback(port: 0))
            if !isTakenByTCP(socket.localAddress.port) { return socket }
        }
    }

    private static func isTakenByTCP(_ port: UInt16) -> Bool {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        return SocketAddress.loopback(port: port).withSystemAddress { connect(descriptor, $0, $1) == 0 }
    }

    /// The message with another first byte of the fingerprint.
    private static func changed(_ message: [UInt8]) -> [UInt8] {
        let mark = Array("a=fingerprint:sha-256 ".utf8)
        guard let start = message.indices.first(where: { message[$0...].starts(with: mark) }) else { return message }
        var message = message
        let place = start + mark.count
        message[place] = message[place] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
        return message
    }
}
