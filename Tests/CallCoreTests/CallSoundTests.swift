import CallBasics
import MediaEngine
import MediaTransport
import SDP
import Testing

@testable import CallCore

/// The sound of a secured call in virtual time; its other side is played by hand.
@Suite struct CallSoundTests {
    private let engine: CallEngine
    private let sound: CallSound
    private var own: OfferAnswer
    private var peer: OfferAnswer
    /// The other side's end of the network, in the clear and with its keys.
    private let wire: MemoryLink
    private let path = SecurePath()
    private let secured: SecureLink

    private static let pcmu = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)

    init() throws {
        engine = try CallEngine(.virtual())
        let (near, far) = MemoryLink.pair()
        wire = far
        secured = SecureLink(path, over: far)
        let tone = (0..<80_000).map { Int16(8000 * ($0 % 8 < 4 ? 1 : -1)) }
        sound = try CallSound(engine, .link(near), codecs: ["PCMU"], packetTime: nil, encryption: .sdes) {
            ($0.source, $0.sink) = (.samples(tone, AudioFormat(sampleRate: 8000)), .none)
        }
        own = OfferAnswer(configuration: sound.session, sessionID: 1)
        peer = OfferAnswer(configuration: Self.session(at: far.localAddress), sessionID: 2)
    }

    private static func session(at address: SocketAddress, isSecured: Bool = true) -> SessionConfiguration {
        var medium = MediaConfiguration(port: address.port, formats: [pcmu])
        if isSecured { medium.secure(by: newKeys()) }
        return SessionConfiguration(address: address.host, media: [medium])
    }

    private static func newKeys() -> SDESKeys {
        var generator = SystemRandomNumberGenerator()
        return SDESKeys(using: &generator)
    }

    @Test func `whoever takes the place of the other side gets ICE credentials that the one before has not`() throws {
        var session = sound.session
        let told = ICECredentials(userFragment: "the-name", password: "a-password-of-this-side")
        session.media[0].ice = OwnICE(told, isFull: true)
        let other = try #require(sound.sessionForAnother(like: session).media[0].ice?.credentials)
        // By its stem the media thread knows checks.
        #expect(other.stem == told.stem && other.userFragment != told.userFragment && other.password != told.password)
    }

    /// An offer of this side, taken by both.
    private mutating func offer(_ scope: OfferAnswer.Scope = .everything) async throws {
        try peer.receiveOffer(own.makeOffer(scope))
        try own.receiveAnswer(peer.makeAnswer())
        try await apply()
    }

    /// An offer of the other side, taken by both.
    private mutating func reoffer() async throws {
        try own.receiveOffer(peer.makeOffer())
        try peer.receiveAnswer(own.makeAnswer())
        try await apply()
    }

    private func apply() async throws {
        let lines = try #require(peer.agreed?.audio?.keys)
        let keys = try #require(SDESAgreement(lines))
        path.offer(sending: keys.sending, receiving: keys.receiving)
        try await sound.apply(try #require(own.agreed))
    }

    /// Packets of RTP that came with the right key up to now.
    private func heardPackets() -> Int {
        var buffer = [UInt8](repeating: 0, count: 2048)
        var count = 0
        while true {
            var span = buffer.mutableSpan
            guard let datagram = secured.receive(into: &span, at: engine.now) else { return count }
            if datagram.byteCount == 172 { count += 1 }
        }
    }

    /// The sources whose packets of RTP came with the right key up to now.
    private func heardSources() -> Set<UInt32> {
        var buffer = [UInt8](repeating: 0, count: 2048)
        var sources: Set<UInt32> = []
        while true {
            var span = buffer.mutableSpan
            guard let datagram = secured.receive(into: &span, at: engine.now) else { return sources }
            if datagram.byteCount == 172 { sources.insert(buffer[8..<12].reduce(0) { $0 << 8 | UInt32($1) }) }
        }
    }

    /// Sends packets of 20 ms of sound, by the keys or in the clear, and lets the time pass.
    private func send(_ numbers: Range<UInt16>, over link: any DatagramLink) throws {
        for number in numbers {
            let header: [UInt8] = [
                0x80, 0, UInt8(number >> 8), UInt8(number & 0xFF), 0, 0, UInt8(number * 160 >> 8 & 0xFF),
                UInt8(number * 160 & 0xFF), 0, 0, 0, 5,
            ]
            let packet = header + [UInt8](repeating: 0x20, count: 160)
            link.send(packet.span, to: SocketAddress(ipv4: 0x0A00_0001, port: 5004), at: engine.now)
            try engine.advance(by: .milliseconds(20))
        }
    }

    private func received() async throws -> LegReport.Received { try #require(await sound.call).report().received }

    @Test mutating func `nothing leaves in the clear, and nothing in the clear is heard`() async throws {
        try await offer()
        try engine.advance(by: .milliseconds(400))
        #expect(heardPackets() == 20)
        try send(1..<20, over: wire)
        #expect(try await received().packets == 0)
        try send(20..<40, over: secured)
        let counts = try await received()
        #expect(counts.packets == 20 && counts.lost == 0)
        let security = try #require(await sound.security)
        #expect(security.suite == "AEAD_AES_128_GCM")
        #expect(security.counts.unauthentic == 19 && security.counts.withheld == 0)
        _ = heardPackets()
        #expect(path.statistics.unauthentic == 0 && path.statistics.malformed == 0)
        _ = try await sound.end(after: .zero)
    }

    @Test mutating func `a hold goes on with the same keys, and other keys are taken without a loss`() async throws {
        try await offer()
        try send(1..<10, over: secured)
        own.configuration.hold = .withMusic
        try await offer(.agreedFormats)
        own.configuration.hold = nil
        try await offer(.agreedFormats)
        try send(10..<20, over: secured)
        #expect(try await received().packets == 19)
        _ = heardPackets()
        for round in 1...3 as ClosedRange<UInt16> {
            peer.configuration.media[0].secure(by: Self.newKeys())
            try await reoffer()
            try send(10 + round * 10..<20 + round * 10, over: secured)
            #expect(heardPackets() == 10)
        }
        let received = try await received()
        #expect(received.packets == 49 && received.lost == 0)
        let counts = try #require(await sound.security).counts
        #expect(counts == SecurityStatistics() && path.statistics == SecurityStatistics())
        _ = try await sound.end(after: .zero)
    }

    /// Who takes the other side's place knows nothing of the cycles that the source has counted (RFC 4568, section 7.1.4).
    @Test mutating func `behind another key of its own it is another source, over a hold the same`() async throws {
        try await offer()
        try engine.advance(by: .milliseconds(200))
        let first = heardSources()
        own.configuration.hold = .withMusic
        try await offer(.agreedFormats)
        own.configuration.hold = nil
        try await reoffer()
        try engine.advance(by: .milliseconds(200))
        #expect(first.count == 1 && heardSources() == first)
        own.configuration.media[0].secure(by: Self.newKeys())
        try await offer()
        try engine.advance(by: .milliseconds(200))
        let next = heardSources()
        #expect(next.count == 1 && next != first)
        _ = try await sound.end(after: .zero)
    }

    @Test mutating func `what was not secured is no sound of a secured call, nor the other way round`() async throws {
        var plain = OfferAnswer(configuration: Self.session(at: wire.localAddress, isSecured: false), sessionID: 3)
        var other = OfferAnswer(configuration: Self.session(at: wire.localAddress, isSecured: false), sessionID: 4)
        try other.receiveOffer(plain.makeOffer())
        try plain.receiveAnswer(other.makeAnswer())
        let agreed = try #require(plain.agreed)
        let error = await #expect(throws: EngineError.self) { try await sound.apply(agreed) }
        #expect(error.map { "\($0)" }?.contains("RTP/AVP was agreed, and the call is secured") == true)
        #expect(await sound.call == nil)
        #expect(heardPackets() == 0)
        // And a call that has been secured stays that.
        try await offer()
        await #expect(throws: EngineError.self) { try await sound.apply(agreed) }
        try engine.advance(by: .milliseconds(200))
        #expect(heardPackets() == 10 && path.statistics.unauthentic == 0)
        _ = try await sound.end(after: .zero)

        let open = try CallSound(engine, .link(wire), codecs: ["PCMU"], packetTime: nil) { $0.source = .silence }
        let secured = try #require(own.agreed)
        await #expect(throws: EngineError.self) { try await open.apply(secured) }
        #expect(await open.call == nil)
        #expect(await open.security == nil)
    }

    /// Who makes calls by the engine alone is told, too.
    @Test mutating func `the engine refuses an agreement that its links do not keep`() async throws {
        try await offer()
        let media = try #require(own.agreed?.audio)
        let agreement = try MediaAgreement(media, in: engine.registry, isSecured: true)
        var configuration = CallConfiguration(network: .link(wire, local: wire.localAddress))
        (configuration.agreement, configuration.source, configuration.sink) = (agreement, .silence, .none)
        await #expect(throws: EngineError.self) { _ = try await engine.makeCall(configuration) }
        configuration.agreement.isSecured = false
        configuration.security = path
        await #expect(throws: EngineError.self) { _ = try await engine.makeCall(configuration) }
        #expect(throws: EngineError.self) { _ = try MediaAgreement(media, in: engine.registry) }
        _ = try await sound.end(after: .zero)
    }
}
