import Foundation
import MediaEngine
import MediaEngineTesting
import SDP
import TestSupport
import Testing

/// Calls over real sockets, ticked by hand: loopback hands a datagram over before `sendto` returns.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine) struct UDPCallRealTimeTests {
    /// 20 s of 440 Hz at 48 kHz.
    private static let sine = (0..<960_000).map { Int16(8000 * sin(2 * .pi * 440 * Double($0) / 48000)) }

    private func configuration(_ name: String, codec: String, host: String) throws -> CallConfiguration {
        let local = try #require(SocketAddress(host: host, port: 0))
        var configuration = CallConfiguration(network: .udp(local: local))
        configuration.name = name
        configuration.agreement.codec = AgreedCodec(codec)
        configuration.source = .samples(Self.sine, AudioFormat(sampleRate: 48000))
        configuration.sink = .none
        return configuration
    }

    /// Two legs whose caller alone knows where the other is.
    private func pair(codec: String, host: String) async throws -> (engine: CallEngine, caller: Call, callee: Call) {
        let engine = try CallEngine(.virtual(seed: 1))
        let callee = try await engine.makeCall(try configuration("B", codec: codec, host: host))
        var calling = try configuration("A", codec: codec, host: host)
        calling.agreement.remote = callee.localAddress
        return (engine, try await engine.makeCall(calling), callee)
    }

    @Test(arguments: [("opus", "127.0.0.1"), ("PCMU", "::1")])
    func `two legs hear each other, the callee by symmetric RTP`(codec: String, host: String) async throws {
        let (engine, caller, callee) = try await pair(codec: codec, host: host)
        try engine.advance(by: .milliseconds(300))
        try caller.sendDTMF("42")
        try engine.advance(by: .milliseconds(1200))
        let (near, far) = (caller.report(hearing: callee), callee.report(hearing: caller))
        #expect(far.received.packets > 70 && near.received.packets > 70)
        #expect(far.received.lost == 0 && near.received.lost == 0)
        #expect(far.dtmf == "42")
        #expect(far.heardLevel > -60)
        #expect((far.mouthToEarMs ?? 0) > 20 && (far.mouthToEarMs ?? 0) < 100)
        #expect(engine.tickStatistics.count == 150)
    }

    @Test func `RTCP on a port of its own is heard also while packets come calmly`() async throws {
        let engine = try CallEngine(.virtual(seed: 1))
        /// Any port is taken whose next one is free, too.
        func makeCall(_ name: String, remote: SocketAddress? = nil) async throws -> Call {
            var wanted = try configuration(name, codec: "PCMU", host: "127.0.0.1")
            wanted.agreement.multiplexesControl = false
            wanted.agreement.remote = remote
            for _ in 0..<20 {
                do throws(EngineError) { return try await engine.makeCall(wanted) } catch {
                    guard case .network = error else { throw error }
                }
            }
            return try await engine.makeCall(wanted)
        }
        let callee = try await makeCall("B")
        let caller = try await makeCall("A", remote: callee.localAddress)
        try engine.advance(by: .seconds(20))
        #expect(caller.report().rtcp.fractionLost == 0 && callee.report().rtcp.fractionLost == 0)
        #expect(caller.report().rtcp.roundTripMs != nil && callee.report().rtcp.roundTripMs != nil)
    }

    @Test func `multiplexing begins and ends in mid-call, and RTCP goes where it was agreed`() async throws {
        let engine = try CallEngine(.virtual(seed: 1))
        let (media, control) = (try UDPSocket(bind: .loopback(port: 0)), try UDPSocket(bind: .loopback(port: 0)))
        var wanted = try configuration("A", codec: "PCMU", host: "127.0.0.1")
        wanted.agreement.remote = media.localAddress
        wanted.agreement.remoteControl = control.localAddress
        wanted.agreement.multiplexesControl = false
        let call = try await engine.makeCall(wanted)
        var sequenceNumbers: [UInt16] = []
        for isMultiplexed in [false, true, false] {
            var agreement = call.agreement
            agreement.multiplexesControl = isMultiplexed
            try await call.update(agreement)
            var (onMedia, onControl) = (0, 0)
            for _ in 0..<150 {
                try engine.advance(by: .milliseconds(100))
                drain(media, at: engine.now) { bytes, source in
                    #expect(source == call.localAddress)
                    let kind = DatagramKind(of: bytes)
                    if kind == .rtcp { onMedia += 1 }
                    guard kind == .rtp, let packet = try? RTPPacket(parsing: bytes) else { return }
                    sequenceNumbers.append(packet.header.sequenceNumber)
                }
                drain(control, at: engine.now) { bytes, source in
                    let kind = DatagramKind(of: bytes)
                    #expect(source == call.localControlAddress && kind == .rtcp)
                    onControl += 1
                }
            }
            #expect((onMedia > 0) == isMultiplexed && (onControl > 0) == !isMultiplexed, "\(onMedia), \(onControl)")
        }
        #expect(sequenceNumbers.count >= 2248)
        #expect(zip(sequenceNumbers, sequenceNumbers.dropFirst()).allSatisfy { $0 &+ 1 == $1 })
    }

    /// Takes all that has come to `socket`, with who has sent it.
    private func drain(_ socket: UDPSocket, at now: MediaTime, _ body: (Span<UInt8>, SocketAddress) -> Void) {
        var bytes = [UInt8](repeating: 0, count: 2048)
        while true {
            var buffer = bytes.mutableSpan
            guard let datagram = socket.receive(into: &buffer, at: now) else { return }
            body(bytes.span.extracting(first: datagram.byteCount), datagram.source)
        }
    }

    @Test func `RTCP on a port of its own is refused where none was reserved, and the ports are kept`() async throws {
        let engine = try CallEngine(.virtual())
        let reservation = try await engine.reserve(.loopback(port: 0))
        let apart = {
            var agreement = MediaAgreement()
            agreement.multiplexesControl = false
            return agreement
        }()
        var wanted = CallConfiguration(network: .reserved(reservation))
        (wanted.source, wanted.sink, wanted.agreement) = (.silence, .none, apart)
        let refused = wanted
        let error = await #expect(throws: EngineError.self) { try await engine.makeCall(refused) }
        #expect(Self.code(of: error) == .noControlPort)
        wanted.agreement = .nothing
        let call = try await engine.makeCall(wanted)
        let late = await #expect(throws: EngineError.self) { try await call.update(apart) }
        #expect(Self.code(of: late) == .noControlPort && call.agreement == .nothing)
        try await call.update(MediaAgreement())
        try await call.end()
    }

    private static func code(of error: EngineError?) -> EngineError.StateFault? {
        if case .state(let failure) = error { failure.code } else { nil }
    }

    @Test func `junk, strangers and unknown payload types are counted and the call goes on`() async throws {
        let (engine, caller, callee) = try await pair(codec: "PCMU", host: "127.0.0.1")
        try engine.advance(by: .milliseconds(300))
        let stranger = try UDPSocket(bind: .loopback(port: 0))
        var generator = SeededGenerator(seed: 3)
        for round in 0..<400 {
            var bytes = (0..<Int(generator.next() % 300)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            if round % 3 == 0, bytes.count > 12 { (bytes[0], bytes[1]) = (0x80, UInt8(round % 2)) }
            stranger.send(bytes.span, to: callee.localAddress, at: engine.now)
            // Fewer than the socket has room for, and more than it lets through.
            if round % 100 == 99 { try engine.advance(by: .milliseconds(10)) }
        }
        try engine.advance(by: .milliseconds(1000))
        let report = callee.report(hearing: caller)
        #expect(report.received.rejected >= 100 && report.received.rejected + report.received.socketDrops >= 400)
        #expect(report.received.lost == 0)
        #expect(report.received.packets > 50)
    }

    @Test func `what a stranger sends after the lock is counted one by one, by its reason`() async throws {
        let (engine, caller, callee) = try await pair(codec: "PCMU", host: "127.0.0.1")
        try engine.advance(by: .milliseconds(300))
        let stranger = try UDPSocket(bind: .loopback(port: 0))
        func send(_ bytes: [UInt8]) { stranger.send(bytes.span, to: callee.localAddress, at: engine.now) }
        for number in 0..<50 { send(ReceiveRig.packet(number, ssrc: 9)) }
        send(ReceiveRig.goodbye(9))
        // A binding request of STUN, and a record of DTLS.
        for first: UInt8 in [0, 22] { send([first, 1] + [UInt8](repeating: 0, count: 18)) }
        try engine.advance(by: .milliseconds(300))
        let received = callee.report(hearing: caller).received
        #expect(received.refused.otherAddress == 50 && received.refused.otherControl == 1)
        #expect(received.refused.otherProtocol == 2 && received.refused.unnamedHost == 0)
        #expect(received.rejected == 53 && received.socketDrops == 0 && received.lost == 0)
    }

    @Test func `what the socket drops for want of room is told as that, and not as a stranger's`() async throws {
        let engine = try CallEngine(.virtual(seed: 1))
        let callee = try await engine.makeCall(try configuration("B", codec: "PCMU", host: "127.0.0.1"))
        let peer = try UDPSocket(bind: .loopback(port: 0))
        func send(_ number: Int) {
            peer.send(ReceiveRig.packet(number, ssrc: 9).span, to: callee.localAddress, at: engine.now)
        }
        for number in 0..<20 {
            send(number)
            try engine.advance(by: .milliseconds(20))
        }
        // Nobody reads meanwhile.
        for number in 20..<5020 { send(number) }
        try engine.advance(by: .seconds(1))
        let received = callee.report().received
        #expect(received.socketDrops > 100 && received.rejected == 0)
        #expect(received.refused.otherAddress == 0 && received.refused.otherControl == 0)
        // Where both ends are busy, some do not get as far as the socket.
        #expect(received.packets >= 20 && received.packets + received.socketDrops <= 5020, "\(received)")
    }

    @Test func `a port that is taken is an error`() async throws {
        let engine = try CallEngine(.virtual())
        let taken = try UDPSocket(bind: .loopback(port: 0))
        let error = await #expect(throws: EngineError.self) {
            try await engine.makeCall(CallConfiguration(network: .udp(local: taken.localAddress)))
        }
        guard case .network(let network) = error else {
            Issue.record("expected a network error, got \(String(describing: error))")
            return
        }
        #expect(network.code == .portInUse)
    }

    @Test func `the ports of a call that has ended are free while the call is kept`() async throws {
        let engine = try CallEngine(.virtual())
        let reservation = try await engine.reserve(.loopback(port: 0), hasControlPort: false)
        var address = reservation.localAddress
        for network in [CallNetwork.reserved(reservation), .udp(local: address)] {
            var wanted = CallConfiguration(network: network)
            (wanted.source, wanted.sink) = (.silence, .none)
            let call = try await engine.makeCall(wanted)
            address = call.localAddress
            try await call.end()
            #expect(call.report().received.packets == 0)
        }
        _ = try UDPSocket(bind: address)
    }

    @Test func `a card that does not open does not cost the reservation`() async throws {
        let engine = try CallEngine(.virtual())
        let reservation = try await engine.reserve(.loopback(port: 0), hasControlPort: false)
        var wanted = CallConfiguration(network: .reserved(reservation))
        wanted.source = .silence
        wanted.sink = .card(FaultyCard([ScriptedFault(.occupy, at: .zero)]))
        await #expect(throws: EngineError.self) { try await engine.makeCall(wanted) }
        wanted.sink = .none
        let call = try await engine.makeCall(wanted)
        #expect(call.localAddress == reservation.localAddress)
        try await call.end()
    }

    @Test func `two engines that offer and answer hear each other`() async throws {
        let engine = try CallEngine(.virtual())
        let ports = [
            try await engine.reserve(.loopback(port: 0), hasControlPort: true),
            try await engine.reserve(.loopback(port: 0), hasControlPort: true),
        ]
        let formats = try engine.registry.payloadFormats(for: ["G722", "PCMU"])
        let sessions = ports.map { port in
            var medium = MediaConfiguration(port: port.localAddress.port, formats: formats)
            medium.controlPort = port.localControlAddress?.port
            medium.isMultiplexed = false
            return SessionConfiguration(address: "127.0.0.1", media: [medium])
        }
        let (offerer, answerer) = try AgreementFromSDPTests.agree(sessions[0], sessions[1])
        var calls: [Call] = []
        for (port, media) in zip(ports, [offerer, answerer]) {
            var configuration = CallConfiguration(network: .reserved(port))
            configuration.agreement = try MediaAgreement(media, in: engine.registry)
            configuration.source = .samples(chirps(3, AudioFormat(sampleRate: 16_000)), AudioFormat(sampleRate: 16_000))
            configuration.sink = .none
            calls.append(try await engine.makeCall(configuration))
        }
        try engine.advance(by: .seconds(2))
        for call in calls {
            #expect(call.report().received.packets > 90 && call.report().received.lost == 0)
            #expect(call.agreement.codec?.name == "G722/8000")
        }
        // The ports are the calls'.
        var second = CallConfiguration(network: .reserved(ports[0]))
        second.source = .silence
        second.sink = .none
        let taken = second
        await #expect(throws: EngineError.self) { try await engine.makeCall(taken) }
    }
}
