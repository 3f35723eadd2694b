import Testing

@testable import SDP

@Suite struct KeyingAttributesTests {
    private func attributes(_ lines: String) throws -> [SDPAttribute] {
        try #require(try SessionDescription(parsing: lines).media.first).keyingAttributes
    }

    private func crypto(_ value: String) -> CryptoAttribute? { CryptoAttribute(parsing: Bytes(value)) }

    @Test(
        arguments: [
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc", nil, nil, nil),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc|", nil, nil, nil),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc|2^20", 1_048_576, nil, nil),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc|1048576", 1_048_576, nil, nil),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc|2^20|1:32", 1_048_576, 1, 32),
            ("1 AES_CM_128_HMAC_SHA1_80 INLINE:abc|1:4", nil, 1, 4),
            ("1 AES_CM_128_HMAC_SHA1_80 inline:abc|2^48", 281_474_976_710_656, nil, nil),
        ] as [(String, UInt64?, UInt64?, UInt8?)]
    )
    func `a key has its lifetime and its identifier`(
        line: String,
        lifetime: UInt64?,
        identifier: UInt64?,
        count: UInt8?
    ) throws {
        let found = try #require(crypto(line))
        #expect(found.tag == 1 && found.suite == "AES_CM_128_HMAC_SHA1_80" && found.parameters.isEmpty)
        #expect(found.keys.map(\.keyAndSalt) == ["abc"] && found.keys[0].lifetime == lifetime)
        #expect(found.keys[0].identifier?.value == identifier && found.keys[0].identifier?.byteCount == count)
    }

    @Test func `several keys and parameters are kept`() throws {
        let found = try #require(
            crypto("2  F8_128_HMAC_SHA1_80\tinline:a|2^20|1:4;inline:b|2^20|2:4 KDR=1 UNENCRYPTED_SRTCP")
        )
        #expect(found.keys.map(\.keyAndSalt) == ["a", "b"] && found.keys.map(\.identifier?.value) == [1, 2])
        #expect(found.parameters == ["KDR=1", "UNENCRYPTED_SRTCP"])
    }

    @Test(arguments: [
        "", "1", "1 X", "x X inline:a", "1234567890 X inline:a", "-1 X inline:a", "1 X inline:", "1 X a", "1 X other:a",
        "1 X inline:a|2^64", "1 X inline:a|3^2", "1 X inline:a|1:0", "1 X inline:a|1:129",
        "1 X inline:a|1:4|2^20", "1 X inline:a|2^20|2^20", "1 X inline:a|1:4|1:4", "1 X inline:a;b", "1 X inline:a|x:4",
    ])
    func `a crypto line that is not understood is none`(line: String) {
        #expect(crypto(line) == nil)
    }

    @Test func `keys and path of the session hold for a medium that says nothing of them`() throws {
        let found = try attributes(
            """
            a=fingerprint:SHA-256 AD:87:b3
            a=setup:actpass
            a=ice-ufrag:session
            a=ice-pwd:password
            a=ice-options:trickle ice2
            a=ice-lite
            a=tool:x
            m=audio 9 UDP/TLS/RTP/SAVPF 111
            a=setup:ACTIVE
            a=connection:new
            a=mid:0
            a=rtpmap:111 opus/48000/2
            a=candidate:a0+B/3 1 UDP 2130706432 74.125.127.126 2345 typ srflx raddr 192.168.1.5 rport 2346 generation 2
            a=candidate:X 1 tcp 1 a.local 9 typ host tcptype active
            a=candidate:broken
            a=end-of-candidates
            """
        )
        #expect(found.fingerprints.map(\.hash) == ["sha-256"] && found.fingerprints[0].bytes == [0xAD, 0x87, 0xB3])
        #expect(found.setupRole == .active && found.keepsConnection == false && found.mediaIdentifier == "0")
        #expect(found.iceCredentials?.userFragment == "session" && found.iceCredentials?.password == "password")
        #expect(found.iceOptions == ["trickle", "ice2"] && found.isICELite)
        #expect(!found.contains { $0.name == "tool" || $0.name == "rtpmap" })
        let candidates = found.candidates
        #expect(candidates.map(\.host) == ["74.125.127.126", "a.local"] && candidates.map(\.port) == [2345, 9])
        #expect(
            candidates[0].foundation == "a0+B/3" && candidates[0].transport == "udp" && candidates[0].kind == "srflx"
        )
        #expect(candidates[0].priority == 2_130_706_432 && candidates[0].component == 1)
        #expect(candidates[0].relatedHost == "192.168.1.5" && candidates[0].relatedPort == 2346)
        #expect(
            candidates.map(\.extensions) == [[SDPAttribute("generation", "2")], [SDPAttribute("tcptype", "active")]]
        )
    }

    @Test(arguments: [
        "", "sha-256", "sha-256 ", "sha-256 A", "sha-256 AB::", "sha-256 AB:C", "sha-256 AB:GG", "sha-256 +1",
    ])
    func `a fingerprint that is not one is left out`(value: String) {
        #expect(Fingerprint(parsing: Bytes(value)) == nil)
    }

    @Test(.enabled(if: CorpusFiles.areThere, "the corpora are not on this machine"))
    func `keys of the corpora are read`() throws {
        let files = try CorpusFiles.descriptions(in: "fetched/pjsip-fuzz/sdes")
        #expect(files.count >= 8)
        var tags: [String: [UInt32]] = [:]
        for (name, bytes) in files {
            tags[String(name.split(separator: "/").last ?? "")] = try SessionDescription(parsing: bytes).media
                .flatMap { $0.keyingAttributes.cryptoLines.map(\.tag) }
        }
        #expect(tags["seed-crypto-aes128.sdp"]?.count == 1)
        #expect(tags["seed-crypto-non-decimal-tag.sdp"] == [])
        #expect((tags["seed-crypto-multiple-tags.sdp"]?.count ?? 0) > 1)
    }
}
