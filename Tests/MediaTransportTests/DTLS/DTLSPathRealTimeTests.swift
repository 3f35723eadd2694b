import CallBasics
import MediaEngine
import SDP
import TestSupport
import Testing

@testable import MediaTransport

/// Legs whose keys DTLS makes, over sockets of the machine; what the media thread does is done by the test.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct DTLSPathRealTimeTests {
    /// One side of a leg: its description, its path, and its sockets.
    private final class Side {
        let identity: DTLSIdentity
        let path: DTLSPath
        let socket: UDPSocket
        let link: any DatagramLink
        let control: any DatagramLink
        let controlSocket: UDPSocket
        var session: OfferAnswer
        /// What came that was authentic.
        private(set) var heard: [[UInt8]] = []
        private(set) var heardControl: [[UInt8]] = []
        private var tick = MediaTime.zero

        /// A side that proves `identity`; its description tells that of `told`, which is the same, but for liars.
        init(told: DTLSIdentity? = nil, loss: Double = 0, seed: UInt64 = 1) throws {
            identity = try DTLSIdentity()
            path = DTLSPath(identity)
            socket = try UDPSocket(bind: .loopback(port: 0))
            controlSocket = try UDPSocket(bind: .loopback(port: 0))
            var impairment = Impairment()
            impairment.lossPercent = 100 * loss
            link = path.secured(ImpairedLink(socket, impairment, seed: seed), isOfControl: false)
            control = path.secured(controlSocket, isOfControl: true)
            let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
            var medium = MediaConfiguration(port: socket.localAddress.port, formats: [format])
            medium.controlPort = controlSocket.localAddress.port
            var generator = SystemRandomNumberGenerator()
            medium.secure(by: told ?? identity, using: &generator)
            session = OfferAnswer(
                configuration: SessionConfiguration(address: "127.0.0.1", media: [medium]),
                sessionID: seed
            )
        }

        /// Begins, or goes on with, what both have agreed on.
        func connect() throws {
            let media = try #require(session.agreed?.audio)
            func address(_ of: AgreedMedia.Address?) -> SocketAddress? {
                of.flatMap { SocketAddress(host: $0.host, port: $0.port) }
            }
            path.connect(
                try #require(media.association),
                isMultiplexed: media.isMultiplexed,
                to: address(media.remote),
                control: address(media.remoteControl)
            )
        }

        /// A tick of the media thread: takes what has come.
        func turn() {
            tick = MonotonicClock.current
            var buffer = [UInt8](repeating: 0, count: 2048)
            for isOfControl in [false, true] {
                while true {
                    var span = buffer.mutableSpan
                    guard let datagram = (isOfControl ? control : link).receive(into: &span, at: tick) else { break }
                    let packet = Array(buffer[..<datagram.byteCount])
                    if isOfControl { heardControl.append(packet) } else { heard.append(packet) }
                }
            }
        }

        func send(_ packet: [UInt8], to other: Side) { link.send(packet.span, to: other.socket.localAddress, at: tick) }

        func sendControl(_ packet: [UInt8], to other: Side) {
            control.send(packet.span, to: other.controlSocket.localAddress, at: tick)
        }
    }

    private func agree(_ a: Side, _ b: Side) throws {
        try b.session.receiveOffer(a.session.makeOffer())
        try a.session.receiveAnswer(b.session.makeAnswer())
        for side in [a, b] { try side.connect() }
    }

    /// Has ticks go by for both until `isDone`.
    private func run(_ sides: [Side], until isDone: () -> Bool) -> Bool {
        Polling.wait {
            for side in sides { side.turn() }
            return isDone()
        }
    }

    /// What becomes of both, while ticks go by.
    private func outcomes(_ a: Side, _ b: Side) async -> [Result<SRTPSuite?, DTLSError>] {
        let found = Watched<[Int: Result<SRTPSuite?, DTLSError>]>([:])
        for (index, path) in [a.path, b.path].enumerated() {
            Task {
                let outcome: Result<SRTPSuite?, DTLSError>
                do throws(DTLSError) { outcome = .success(try await path.connected()?.suite) } catch {
                    outcome = .failure(error)
                }
                found.update { $0[index] = outcome }
            }
        }
        await Polling.eventually {
            for side in [a, b] { side.turn() }
            return found.value.count == 2
        }
        return found.value.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Sends sound both ways until each has heard the other.
    private func talk(_ a: Side, _ b: Side, from sequence: UInt16 = 1) -> Bool {
        var sequence = sequence
        let counts = (a.heard.count, b.heard.count)
        return run([a, b]) {
            a.send(Packets.media(sequence), to: b)
            b.send(Packets.media(sequence), to: a)
            sequence &+= 1
            return a.heard.count > counts.0 && b.heard.count > counts.1
        }
    }

    @Test func `sound flows both ways once both have proved their certificates, and nothing does before`() async throws
    {
        let (a, b) = (try Side(), try Side())
        a.send(Packets.media(1), to: b)
        #expect(a.path.statistics.withheld == 1)
        try agree(a, b)
        let outcomes = await outcomes(a, b)
        #expect(outcomes == [.success(.aes128GCM), .success(.aes128GCM)])
        b.socket.send(Packets.media(2).span, to: a.socket.localAddress, at: .zero)
        #expect(talk(a, b, from: 3))
        #expect(a.path.statistics.unauthentic == 1)
        // A hold, or whatever leaves the association, begins nothing anew.
        try agree(b, a)
        #expect(talk(a, b, from: 30_000))
        // And another name does, with keys of its own.
        var generator = SystemRandomNumberGenerator()
        a.session.configuration.media[0].secure(by: a.identity, using: &generator)
        #expect(a.path.statistics.unauthentic == 1 && b.path.statistics.unauthentic == 0)
        try agree(a, b)
        #expect(await self.outcomes(a, b) == outcomes)
        #expect(talk(a, b, from: 40_000))
    }

    @Test func `who comes with another certificate does not hear, and is not heard, by the keys of before`()
        async throws
    {
        let (a, b, c) = (try Side(), try Side(), try Side())
        try agree(a, b)
        #expect(talk(a, b))
        // From now on it is to be somebody else, who has not proved anything yet.
        a.session = OfferAnswer(configuration: a.session.configuration, sessionID: 3)
        try c.session.receiveOffer(a.session.makeOffer())
        try a.session.receiveAnswer(c.session.makeAnswer())
        let withheld = a.path.statistics.withheld
        try a.connect()
        #expect(
            run([a]) {
                a.send(Packets.media(20_000), to: b)
                return a.path.statistics.withheld > withheld
            }
        )
        let heard = a.heard.count
        b.send(Packets.media(20_000), to: a)
        let early = a.path.statistics.early
        #expect(run([a]) { a.path.statistics.early > early })
        #expect(a.heard.count == heard)
        try c.connect()
        #expect(await outcomes(a, c) == [.success(.aes128GCM), .success(.aes128GCM)])
        #expect(talk(a, c, from: 21_000))
    }

    @Test func `who has ended DTLS is sent nothing more`() async throws {
        let (a, b) = (try Side(), try Side())
        try agree(a, b)
        #expect(talk(a, b))
        let (path, withheld) = (b.path, a.path.statistics.withheld)
        let closing = Task { await path.close() }
        #expect(
            run([a, b]) {
                a.send(Packets.media(20_000), to: b)
                return a.path.statistics.withheld > withheld
            }
        )
        await closing.value
    }

    @Test func `RTCP on a port of its own has an association of its own`() async throws {
        let (a, b) = (try Side(), try Side())
        for side in [a, b] { side.session.configuration.media[0].isMultiplexed = false }
        try agree(a, b)
        #expect(
            run([a, b]) {
                a.sendControl(Packets.control(), to: b)
                b.sendControl(Packets.control(), to: a)
                return !a.heardControl.isEmpty && !b.heardControl.isEmpty
            }
        )
        #expect(talk(a, b))
        #expect(a.heardControl[0] == Packets.control() && a.path.statistics.unauthentic == 0)
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func `a fifth of all datagrams is lost, and it connects`(seed: UInt64)
        throws
    {
        let (a, b) = (try Side(loss: 0.2, seed: seed), try Side(loss: 0.2, seed: seed + 100))
        try agree(a, b)
        #expect(talk(a, b))
    }

    @Test func `who proves another certificate than was told is not heard, and both know why`() async throws {
        let (a, liar) = (try Side(), try Side(told: DTLSIdentity()))
        try agree(a, liar)
        let outcomes = await outcomes(a, liar)
        guard case .failure(.wrongFingerprint(let expected, let actual)) = outcomes[0] else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(expected.count == 1 && expected[0] != actual)
        guard case .failure = outcomes[1] else {
            Issue.record("\(outcomes)")
            return
        }
        a.send(Packets.media(1), to: liar)
        liar.send(Packets.media(1), to: a)
        for side in [a, liar] { side.turn() }
        #expect(a.path.statistics.withheld == 1 && a.heard.isEmpty && liar.heard.isEmpty)
    }

    @Test func `strangers that begin handshakes keep nobody out`() async throws {
        let (a, b) = (try Side(), try Side())
        // What begins a handshake of anybody, and never goes on.
        let stranger = try DTLSIdentity()
        let sockets = try (0..<20).map { _ in try UDPSocket(bind: .loopback(port: 0)) }
        func storm() throws {
            for socket in sockets {
                var association = try DTLSAssociation(stranger, role: .active, fingerprints: [stranger.fingerprint])
                for datagram in association.takeDatagrams() {
                    socket.send(datagram.span, to: a.socket.localAddress, at: .zero)
                }
            }
        }
        try storm()
        try b.session.receiveOffer(a.session.makeOffer())
        try a.session.receiveAnswer(b.session.makeAnswer())
        try a.connect()
        for _ in 0..<5 { a.turn() }
        try storm()
        try b.connect()
        let outcomes = await outcomes(a, b)
        #expect(outcomes == [.success(.aes128GCM), .success(.aes128GCM)])
        try storm()
        #expect(talk(a, b))
    }

    @Test func `behind a NAT it comes from another address, and is heard from there`() async throws {
        let (a, b) = (try Side(), try Side())
        let translated = try Side()
        try b.session.receiveOffer(a.session.makeOffer())
        try a.session.receiveAnswer(b.session.makeAnswer())
        // The description tells an address at which nobody is.
        let association = try #require(a.session.agreed?.audio?.association)
        a.path.connect(association, isMultiplexed: true, to: translated.socket.localAddress, control: nil)
        try b.connect()
        #expect(await outcomes(a, b).allSatisfy { (try? $0.get()) == .aes128GCM })
        #expect(talk(a, b))
    }

    @Test func `the end is told to the other side, and what waits hears of it`() async throws {
        let (a, b) = (try Side(), try Side())
        try b.session.receiveOffer(a.session.makeOffer())
        try a.session.receiveAnswer(b.session.makeAnswer())
        try a.connect()
        let waiting = Task { try await a.path.connected() }
        await a.path.close()
        #expect(try await waiting.value == nil)
        await b.path.close()
    }
}
