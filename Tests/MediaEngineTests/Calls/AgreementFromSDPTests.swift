@testable import MediaEngine
import SDP
import Testing

/// What session descriptions agree on, as a call takes it.
@Suite struct AgreementFromSDPTests {
    static func session(_ formats: [PayloadFormat], port: UInt16) -> SessionConfiguration {
        SessionConfiguration(
            address: "192.0.2.\(port % 100)",
            media: [MediaConfiguration(port: port, formats: formats)]
        )
    }

    /// What both sides agree on when the first offers.
    static func agree(
        _ offered: SessionConfiguration,
        _ answering: SessionConfiguration
    ) throws -> (offerer: AgreedMedia, answerer: AgreedMedia) {
        var offerer = OfferAnswer(configuration: offered, sessionID: 1)
        var answerer = OfferAnswer(configuration: answering, sessionID: 2)
        try answerer.receiveOffer(try offerer.makeOffer())
        let answer = try answerer.makeAnswer()
        let session = try offerer.receiveAnswer(answer)
        return (try #require(session.audio), try #require(answerer.agreed?.audio))
    }

    @Test func `codecs, numbers, events, noise and addresses come over, each side with its own numbers`() throws {
        let registry = PluginRegistry.standard()
        let ours = try registry.payloadFormats(for: ["opus", "PCMU"], hasRedundancy: true)
        #expect(ours.map(\.payloadType) == [96, 0, 97, 98, 13, 101, 99])
        let theirs = [
            PayloadFormat(payloadType: 111, encodingName: "opus", clockRate: 48_000, channelCount: 2),
            PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000),
            PayloadFormat(payloadType: 110, encodingName: "telephone-event", clockRate: 48_000),
        ]
        let (offerer, _) = try Self.agree(Self.session(ours, port: 4000), Self.session(theirs, port: 5004))
        let agreement = try MediaAgreement(offerer, in: registry)
        let codec = try #require(agreement.codec)
        #expect(codec.name.lowercased().hasPrefix("opus/48000") && codec.receivedPayloadType == 96)
        #expect(agreement.acceptedCodecs.map(\.name) == ["PCMU/8000"])
        #expect(agreement.telephoneEvents?.clockRate == 48_000)
        #expect(agreement.telephoneEvents?.receivedPayloadType == 101)
        #expect(agreement.redPayloadType == nil && agreement.comfortNoisePayloadType == nil)
        #expect(agreement.remote == SocketAddress(host: "192.0.2.4", port: 5004))
        #expect(agreement.multiplexesControl && agreement.remoteControl == nil)
        #expect(agreement.direction == .sendReceive)
        _ = try AgreedFormats(agreement, in: registry)
    }

    @Test func `keys are taken at each rate that was agreed on, and sent at the codec's`() throws {
        let registry = PluginRegistry.standard()
        let formats =
            try registry.payloadFormats(for: ["opus"])
            + [PayloadFormat(payloadType: 126, encodingName: "telephone-event", clockRate: 8000)]
        var offerer = OfferAnswer(configuration: Self.session(formats, port: 4000), sessionID: 1)
        // A browser takes all that it is offered.
        let session = try offerer.receiveAnswer(offerer.makeOffer())
        let agreement = try MediaAgreement(#require(session.audio), in: registry)
        let events = try #require(agreement.telephoneEvents)
        #expect(events.clockRate == 48_000 && events.furtherReceived == [126: 8000])
        var taken = try AgreedFormats(agreement, in: registry).payloads
        #expect(taken.content(of: 126) == (.telephoneEvent, 8000))
        #expect(taken.content(of: events.payloadType) == (.telephoneEvent, 48_000))
    }

    @Test(arguments: [MediaProtocol.rtpSAVP, .rtpSAVPF, .dtlsSAVP, .other("TCP/RTP/AVP")])
    func `sound that is to travel secured, or otherwise than by UDP, is no call`(
        transport: MediaProtocol
    ) throws {
        let registry = PluginRegistry.standard()
        let formats = try registry.payloadFormats(for: ["PCMU"])
        func session(_ port: UInt16) -> SessionConfiguration {
            var session = Self.session(formats, port: port)
            session.media[0].protocols = [transport]
            return session
        }
        let (offerer, answerer) = try Self.agree(session(4000), session(5004))
        for media in [offerer, answerer] {
            let error = try #require(throws: EngineError.self) { try MediaAgreement(media, in: registry) }
            guard case .state(let failure) = error else { throw error }
            #expect(failure.code == .unknownTransport)
        }
    }

    @Test func `redundancy is agreed for the codec that is, whichever was preferred`() throws {
        let registry = PluginRegistry.standard()
        let ours = try registry.payloadFormats(for: ["opus", "PCMU", "PCMA"], hasRedundancy: true)
        let theirs = try registry.payloadFormats(for: ["PCMA"], hasRedundancy: true)
        let (_, answerer) = try Self.agree(Self.session(theirs, port: 5004), Self.session(ours, port: 4000))
        let agreement = try MediaAgreement(answerer, in: registry)
        #expect(agreement.codec?.name == "PCMA/8000" && agreement.redPayloadType == theirs[1].payloadType)
    }

    @Test(arguments: [(30, 30), (25, 20), (3, 10), (500, 120)])
    func `a packet time that is asked for is met as nearly as can be`(
        wanted: Int,
        met: Int64
    ) throws {
        let registry = PluginRegistry.standard()
        let formats = try registry.payloadFormats(for: ["PCMU"])
        var theirs = Self.session(formats, port: 5004)
        theirs.media[0].packetTime = wanted
        let (offerer, _) = try Self.agree(Self.session(formats, port: 4000), theirs)
        #expect(try MediaAgreement(offerer, in: registry).packetTime == .milliseconds(met))
    }

    /// What is asked for, the most that is taken, and what is met.
    @Test(
        arguments: [
            (30, nil, 20), (50, nil, 40), (70, nil, 60), (90, nil, 80), (110, nil, 100), (33, nil, 40), (15, nil, 10),
            (16, nil, 20), (3, nil, 10), (500, nil, 120), (60, 50, 40), (nil, 15, 10), (35, 35, 20), (nil, 5, 10),
        ] as [(Int?, Int?, Int64)]
    )
    func `Opus meets a packet time that it has not by one that it has`(
        wanted: Int?,
        most: Int?,
        met: Int64
    ) throws {
        let registry = PluginRegistry.standard()
        let formats = try registry.payloadFormats(for: ["opus"])
        var theirs = Self.session(formats, port: 5004)
        theirs.media[0].packetTime = wanted
        theirs.media[0].maximumPacketTime = most
        let (_, answerer) = try Self.agree(theirs, Self.session(formats, port: 4000))
        var encoding = EncoderConfiguration()
        encoding.ptime = try MediaAgreement(answerer, in: registry).packetTime
        #expect(encoding.ptime == .milliseconds(met))
        let encoder = try registry.codec(named: "opus").makeEncoder(encoding)
        #expect(encoder.format.duration(ofFrames: encoder.frameCount) == encoding.ptime)
    }

    @Test func `every codec has packets of each packet time that is met with it`() throws {
        for entry in PluginRegistry.standard().codecs {
            let description = entry.description
            var encoding = EncoderConfiguration()
            encoding.channelCount = description.format.channelCount
            for wish in 1...250 {
                encoding.ptime = description.ptime(nearest: wish, limit: nil)
                let encoder = try entry.codec.makeEncoder(encoding)
                #expect(encoder.format.duration(ofFrames: encoder.frameCount) == encoding.ptime)
            }
        }
    }

    @Test func `the nearest packet time is the shorter of two, and no longer than the other side takes`() {
        let format = AudioFormat(sampleRate: 8000)
        let usual = CodecDescription(name: "x", clockRate: 8000, format: format)
        #expect(usual.ptime(nearest: 25, limit: nil) == .milliseconds(20))
        #expect(usual.ptime(nearest: 26, limit: nil) == .milliseconds(30))
        #expect(usual.ptime(nearest: 29, limit: 29) == .milliseconds(20))
        let long = CodecDescription(
            name: "x",
            clockRate: 8000,
            format: format,
            ptimes: .milliseconds(20)...(.milliseconds(120)),
            ptimeStep: .milliseconds(20)
        )
        #expect(long.ptime(nearest: 30, limit: nil) == .milliseconds(20))
        #expect(long.ptime(nearest: 119, limit: nil) == .milliseconds(120))
        #expect(long.ptime(nearest: 10, limit: 10) == .milliseconds(20))
        #expect(long.ptime(nearest: 200, limit: nil) == .milliseconds(120))
        #expect(long.ptime(nearest: 60, limit: 50) == .milliseconds(40))
        let short = CodecDescription(
            name: "x",
            clockRate: 8000,
            format: format,
            ptimes: .microseconds(2500)...(.milliseconds(60)),
            ptimeStep: .microseconds(2500)
        )
        #expect(short.ptime(nearest: 23, limit: nil) == .microseconds(22_500))
        #expect(short.ptime(nearest: 1, limit: nil) == .microseconds(2500))
        let only = CodecDescription(
            name: "x",
            clockRate: 8000,
            format: format,
            defaultPtime: .milliseconds(30),
            ptimes: .milliseconds(30)...(.milliseconds(30))
        )
        #expect([5, 30, 33, 60].allSatisfy { only.ptime(nearest: $0, limit: nil) == .milliseconds(30) })
    }

    @Test(
        arguments: [
            ("stereo=1; Sprop-Stereo=1", 2), ("useinbandfec=1;sprop-stereo=0", 1), ("sprop-stereo=17", nil),
            ("stereo=1", nil), (nil, nil),
        ] as [(String?, Int?)]
    ) func `the other side tells whether its Opus is stereo`(parameters: String?, count: Int?) throws {
        let registry = PluginRegistry.standard()
        let ours = try registry.payloadFormats(for: ["opus", "L16/48000/2"])
        let theirs = [
            PayloadFormat(
                payloadType: 111,
                encodingName: "Opus",
                clockRate: 48_000,
                channelCount: 2,
                parameters: parameters
            ),
            PayloadFormat(payloadType: 112, encodingName: "L16", clockRate: 48_000, channelCount: 2),
        ]
        let (_, answerer) = try Self.agree(Self.session(theirs, port: 5004), Self.session(ours, port: 4000))
        let agreement = try MediaAgreement(answerer, in: registry)
        #expect(agreement.codec?.receivedChannelCount == count)
        #expect(agreement.acceptedCodecs.map(\.receivedChannelCount) == [nil])
    }

    @Test func `a direction is seen from here`() throws {
        let registry = PluginRegistry.standard()
        let formats = try registry.payloadFormats(for: ["PCMU"])
        var theirs = Self.session(formats, port: 5004)
        theirs.media[0].direction = .sendOnly
        let (offerer, answerer) = try Self.agree(Self.session(formats, port: 4000), theirs)
        #expect(try MediaAgreement(offerer, in: registry).direction == .receiveOnly)
        #expect(try MediaAgreement(answerer, in: registry).direction == .sendOnly)
    }

    @Test func `a codec that is not here is passed over, and none at all is an error`() throws {
        var registry = PluginRegistry.standard()
        let formats = try registry.payloadFormats(for: ["opus", "PCMU"])
        let (offerer, _) = try Self.agree(Self.session(formats, port: 4000), Self.session(formats, port: 5004))
        try registry.setEnabled(false, codecsNamed: "opus")
        #expect(try MediaAgreement(offerer, in: registry).codec?.name == "PCMU/8000")
        try registry.setEnabled(false, codecsNamed: "PCMU")
        let reduced = registry
        let error = #expect(throws: EngineError.self) { try MediaAgreement(offerer, in: reduced) }
        guard case .codec(let codec) = error else {
            Issue.record("expected a codec error, got \(String(describing: error))")
            return
        }
        #expect(codec.code == .unknownCodec)
    }
}
