import Testing

@testable import SDP

/// Random wishes of two sides: what they agree on is the same, seen from both.
@Suite struct AgreementPropertyTests {
    private static let pool: [PayloadFormat] = [
        .pcmu, .pcma, .g722, .noise, .opus(96), .opus(111, "stereo=1"), .iLBC, .events(101), .events(102, 48000, nil),
        .events(103, 8000, "0-11,16"),
        PayloadFormat(payloadType: 98, encodingName: "ILBC", clockRate: 8000, parameters: "mode=20"),
        PayloadFormat(payloadType: 18, encodingName: "G729", clockRate: 8000, parameters: "annexb=no"),
        PayloadFormat(payloadType: 18, encodingName: "G729", clockRate: 8000),
        PayloadFormat(payloadType: 104, encodingName: "AMR", clockRate: 8000, parameters: "octet-align=1"),
        PayloadFormat(payloadType: 105, encodingName: "AMR", clockRate: 8000),
        PayloadFormat(payloadType: 106, encodingName: "CN", clockRate: 16000),
        PayloadFormat(payloadType: 107, encodingName: "L16", clockRate: 44100, channelCount: 2),
    ]

    private static func randomize(_ configuration: inout SessionConfiguration, _ generator: inout SeededGenerator) {
        configuration.address = ["192.0.2.1", "2001:db8::5", "host.example.com"].randomElement(using: &generator) ?? ""
        configuration.hold = [nil, nil, nil, .withMusic, .silent].randomElement(using: &generator) ?? nil
        configuration.formatOrder = Bool.random(using: &generator) ? .ours : .offerer
        let count = Int.random(in: 1...3, using: &generator)
        while configuration.media.count < count {
            configuration.media.append(MediaConfiguration(port: 1, formats: [.pcmu]))
        }
        for index in configuration.media.indices {
            var formats = Array(pool.shuffled(using: &generator).prefix(Int.random(in: 1...9, using: &generator)))
            if let codec = formats.first(where: { $0.role == .codec }), Bool.random(using: &generator) {
                formats.append(PayloadFormat(redundant: codec, payloadType: 121))
            }
            configuration.media[index].formats = formats
            configuration.media[index].port =
                UInt16.random(in: 0...20, using: &generator) == 0 ? 0 : UInt16.random(in: 1...65534, using: &generator)
            configuration.media[index].controlPort =
                Bool.random(using: &generator) ? nil : UInt16.random(in: 1...65535, using: &generator)
            configuration.media[index].isMultiplexed = Bool.random(using: &generator)
            configuration.media[index].packetTime = [nil, 10, 20, 60].randomElement(using: &generator) ?? nil
            configuration.media[index].maximumPacketTime = [nil, 40].randomElement(using: &generator) ?? nil
            configuration.media[index].direction =
                MediaDirection.allCases.randomElement(using: &generator) ?? .sendReceive
            configuration.media[index].maximumBitRate = [nil, 64_000].randomElement(using: &generator) ?? nil
        }
        if Bool.random(using: &generator), configuration.media.count > 1 { configuration.media[1].kind = "video" }
    }

    private func expectMirror(_ a: AgreedSession, _ b: AgreedSession, _ seed: UInt64) {
        #expect(a.local == b.remote && a.remote == b.local, "seed \(seed)")
        #expect(a.media.map(\.lineIndex) == b.media.map(\.lineIndex), "seed \(seed)")
        for (mine, theirs) in zip(a.media, b.media) {
            #expect(mine.kind == theirs.kind && mine.transport == theirs.transport, "seed \(seed)")
            #expect(mine.sending == theirs.receiving && mine.receiving == theirs.sending, "seed \(seed)")
            #expect(mine.remote == theirs.local && mine.local == theirs.remote, "seed \(seed)")
            #expect(
                mine.remoteControl == theirs.localControl && mine.localControl == theirs.remoteControl,
                "seed \(seed)"
            )
            #expect(mine.isMultiplexed == theirs.isMultiplexed, "seed \(seed)")
            #expect(mine.direction == theirs.direction.reversed, "seed \(seed)")
            #expect(mine.localSecurity == theirs.remoteSecurity, "seed \(seed)")
            #expect(
                !mine.sending.codecs.isEmpty || mine.sending.telephoneEvents + mine.sending.comfortNoise != [],
                "seed \(seed)"
            )
        }
    }

    /// No number stands for two formats in one side's descriptions of one line, over all exchanges.
    private func record(_ description: SessionDescription, _ meanings: inout [[UInt8: String]], _ seed: UInt64) {
        for (index, medium) in description.media.enumerated() {
            if index == meanings.count { meanings.append([:]) }
            for format in medium.formats where format.payloadType >= 35 {
                let meaning =
                    "\(format.encodingName.lowercased())/\(format.clockRate) \(format.parameter("octet-align") ?? "")"
                let known = meanings[index][format.payloadType] ?? meaning
                #expect(known == meaning, "seed \(seed), \(format.payloadType)")
                meanings[index][format.payloadType] = meaning
            }
        }
    }

    @Test(arguments: 0..<20) func `what two sides agree on is mirrored, exchange after exchange`(round: Int) throws {
        var completed = 0
        for seed in UInt64(round * 8)..<UInt64(round * 8 + 8) {
            var generator = SeededGenerator(seed: seed)
            var sides = [OfferAnswer(.audio(), id: 1), OfferAnswer(.audio(), id: 2)]
            var versions: [SessionDescription?] = [nil, nil]
            for _ in 0..<8 {
                let offerer = Int.random(in: 0...1, using: &generator)
                for index in 0...1 where Bool.random(using: &generator) || sides[index].agreed == nil {
                    Self.randomize(&sides[index].configuration, &generator)
                }
                let scope: OfferAnswer.Scope = Bool.random(using: &generator) ? .everything : .agreedFormats
                let before = sides.map(\.agreed)
                let offer = try sides[offerer].makeOffer(scope)
                try sides[1 - offerer].receiveOffer(offer)
                var written: [(Int, SessionDescription)] = [(offerer, offer)]
                if let answer = try? sides[1 - offerer].makeAnswer(), Int.random(in: 0..<8, using: &generator) > 0 {
                    try sides[offerer].receiveAnswer(answer)
                    written.append((1 - offerer, answer))
                    let agreed = try sides.map { try #require($0.agreed) }
                    expectMirror(agreed[0], agreed[1], seed)
                    #expect(
                        answer.media.count == offer.media.count && answer.media.map(\.kind) == offer.media.map(\.kind)
                    )
                    completed += 1
                } else if sides[1 - offerer].state == .theirOffer {
                    sides[1 - offerer].rollBack()
                    sides[offerer].rollBack()
                    #expect(sides.map(\.agreed) == before, "seed \(seed)")
                } else {
                    // The answer was lost: one side agreed, the other did not; they would end the session.
                    break
                }
                for (index, description) in written {
                    let last = versions[index]
                    let isSame = last.map {
                        $0.texts.filter { !$0.hasPrefix("o=") } == description.texts.filter { !$0.hasPrefix("o=") }
                    }
                    #expect(description.version == (last?.version ?? 0) + (isSame == true ? 0 : 1), "seed \(seed)")
                    #expect((before[index]?.local.media.count ?? 0) <= description.media.count, "seed \(seed)")
                    versions[index] = description
                    #expect(try SessionDescription(parsing: description.bytes) == description)
                }
            }
        }
        // Most exchanges end with an agreement, else the above would say little.
        #expect(completed > 15)
    }

    @Test func `our own offers never give a number another meaning`() throws {
        for seed in UInt64(0)..<100 {
            var generator = SeededGenerator(seed: 1000 + seed)
            var (first, second) = (OfferAnswer(.audio()), OfferAnswer(.audio(address: "192.0.2.2")))
            var meanings: [[UInt8: String]] = []
            for _ in 0..<6 {
                first.configuration.media[0].formats = Array(Self.pool.shuffled(using: &generator).prefix(6)) + [.pcmu]
                let offer = try first.makeOffer()
                record(offer, &meanings, seed)
                if Bool.random(using: &generator) {
                    first.rollBack()
                } else {
                    try first.receiveAnswer(second.answer(offer))
                }
            }
        }
    }
}
