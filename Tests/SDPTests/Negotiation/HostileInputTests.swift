import Testing

@testable import SDP

/// Whatever comes, nothing traps, nothing takes long, and what is written is one description.
@Suite struct HostileInputTests {
    /// Reads all that can be read of `bytes`, and takes it as an offer and as an answer.
    static func exercise(_ bytes: [UInt8]) {
        guard let description = try? SessionDescription(parsing: bytes) else { return }
        let written = description.bytes
        if written.count != description.byteCount || (try? SessionDescription(parsing: written))?.bytes != written {
            Issue.record("it is not written as it was read: \(bytes)")
        }
        _ = (description.origin, description.groups, description.times, description.attributes, description.sessionName)
        for medium in description.media {
            _ = (medium.host, medium.direction, medium.controlAddress, medium.maximumBitRate, medium.packetTime)
            _ = (medium.sources, medium.streamIdentifiers, medium.feedback, medium.headerExtensions, medium.formats)
            let keys = medium.keyingAttributes
            _ = (keys.cryptoLines, keys.candidates, keys.fingerprints, keys.setupRole, keys.iceOptions)
        }
        var answering = OfferAnswer(.hostile)
        if let answer = try? answering.answer(description) {
            expectOneDescription(answer, bytes)
            if answer.media.count != description.media.count { Issue.record("the answer has other lines: \(bytes)") }
            if let again = try? answering.makeOffer() { expectOneDescription(again, bytes) }
        }
        var offering = pendingOffer
        _ = try? offering.receiveAnswer(description)
    }

    private static let pendingOffer = {
        var session = OfferAnswer(.hostile)
        if (try? session.makeOffer()) == nil { Issue.record("it makes no offer") }
        return session
    }()

    /// What we wrote is read as the very lines that we wrote, without control characters.
    private static func expectOneDescription(_ description: SessionDescription, _ cause: [UInt8]) {
        let bytes = description.bytes
        let isText = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x0D || $0 == 0x0A }
        if !isText || (try? SessionDescription(parsing: bytes)) != description {
            Issue.record("what was written is not one description: \(cause)")
        }
    }

    static let seeds = [
        PeerOfferTests.chromium, PeerOfferTests.linphone, PeerOfferTests.baresip,
        SessionDescriptionTests.lines.joined(separator: "\r\n"),
        """
        v=0
        c=IN IP4 192.0.2.2
        m=audio 5000 RTP/SAVP 0 96 97 98
        b=TIAS:64000
        a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:NzB4d1BINUAv|2^20|1:32;inline:a|4 KDR=1
        a=candidate:1 1 udp 2130706432 192.0.2.2 5000 typ srflx raddr 192.0.2.3 rport 5001
        a=rtpmap:96 telephone-event/8000
        a=fmtp:96 0-15,66-70
        a=rtpmap:97 red/8000
        a=fmtp:97 0/0
        a=rtpmap:98 iLBC/8000
        a=fmtp:98 mode=20
        a=ptime:20.5
        a=rtcp:5001 IN IP4 192.0.2.2
        """,
    ].map { Array($0.utf8) }

    @Test(arguments: seeds.indices) func `every truncation is taken or refused`(seed: Int) {
        let whole = Self.seeds[seed]
        for count in 0...whole.count { Self.exercise(Array(whole.prefix(count))) }
    }

    @Test(arguments: seeds.indices) func `a byte that is changed does no harm`(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let interesting = Array("\r\n\0=: /|;-,0129am\u{7F}".utf8) + [0xFF, 0x80]
        // Every second byte, for the time's sake; the fuzz target has all of them.
        for index in stride(from: seed % 2, to: Self.seeds[seed].count, by: 2) {
            var spoiled = Self.seeds[seed]
            let isInteresting = Bool.random(using: &generator)
            spoiled[index] =
                isInteresting
                ? interesting.randomElement(using: &generator) ?? 0 : UInt8.random(in: 0...255, using: &generator)
            Self.exercise(spoiled)
        }
    }

    @Test func `lines that are shuffled, doubled and cut do no harm`() {
        var generator = SeededGenerator(seed: 1)
        let lines = Self.seeds.flatMap { $0.split { $0 == 0x0A || $0 == 0x0D } }
        for _ in 0..<1000 {
            let count = Int.random(in: 1...30, using: &generator)
            let picked = (0..<count).map { _ in lines[Int.random(in: lines.indices, using: &generator)] }
            Self.exercise(Array("c=IN IP4 192.0.2.2\n".utf8) + picked.joined(separator: [0x0A]))
        }
    }

    @Test func `random bytes do no harm`() {
        var generator = SeededGenerator(seed: 2)
        for round in 0..<2000 {
            let count = Int.random(in: 0...120, using: &generator)
            let range: ClosedRange<UInt8> = round % 2 == 0 ? 0...255 : 9...127
            Self.exercise((0..<count).map { _ in UInt8.random(in: range, using: &generator) })
        }
    }

    /// The dearest descriptions that the limits allow, by what they have the most of.
    static let dearest: [(String, [UInt8])] = [
        ("lines", "v=0\nc=IN IP4 192.0.2.2\n" + String(repeating: "i=\n", count: 1990) + "m=audio 1 RTP/AVP 0"),
        (
            "formats",
            "c=IN IP4 192.0.2.2\n"
                + String(
                    repeating: "m=audio 1 RTP/AVP 0" + (1..<128).map { " \($0)" }.joined() + "\n"
                        + (96..<128).map { "a=rtpmap:\($0) x/1\n" }.joined(),
                    count: 16
                )
        ),
        (
            "attributes",
            "c=IN IP4 192.0.2.2\n"
                + String(
                    repeating: "m=audio 1 RTP/AVP 0" + (1..<128).map { " \($0)" }.joined() + "\n"
                        + (0..<110).map { "a=fmtp:\(127 - $0) a\n" }.joined(),
                    count: 16
                )
        ),
        (
            "events",
            "c=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP 0 101\na=rtpmap:101 telephone-event/8000\na=fmtp:101 "
                + String(repeating: "0-255,", count: 10_000) + "1"
        ),
        ("blanks", "c=IN IP4 1.1.1.1\nm=audio" + String(repeating: " ", count: 65_000) + "1 RTP/AVP 0"),
        ("keys", "c=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP 0\na=crypto:1 X " + String(repeating: "inline:a;", count: 7000)),
        (
            "red",
            "c=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP 0 96\na=rtpmap:96 red/8000\na=fmtp:96 "
                + String(repeating: "0/", count: 32_000) + "0"
        ),
        (
            "parameters",
            "c=IN IP4 1.1.1.1\nm=audio 1 RTP/AVP 0 97\na=rtpmap:97 iLBC/8000\na=fmtp:97 "
                + String(repeating: ";", count: 65_000)
        ),
        ("letters", "c=IN IP4 1.1.1.1\nm=" + String(repeating: "\u{301}", count: 32_000) + " 1 RTP/AVP 0"),
    ].map { ($0, Array($1.utf8)) }
}

extension SessionConfiguration {
    /// A phone that takes much.
    static var hostile: SessionConfiguration {
        .audio([
            .opus(), .pcmu, .pcma, .g722, .iLBC, .noise, .events(100, 48000), .events(),
            PayloadFormat(redundant: .pcmu, payloadType: 121),
        ]) {
            $0.protocols = [.rtpAVP, .rtpAVPF, .rtpSAVP, .rtpSAVPF, .dtlsSAVP, .dtlsSAVPF]
        }
    }
}
