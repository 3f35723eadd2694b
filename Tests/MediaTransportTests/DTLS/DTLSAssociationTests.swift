import CallBasics
import SDP
import TestSupport
import Testing

@testable import MediaTransport

/// Two sides that agree on keys, or are kept from it.
@Suite struct DTLSAssociationTests {
    @Test func `both sides have the same keys, and protect packets with them`() throws {
        let pair = try DTLSPair()
        #expect(pair.states.active.isConnecting && pair.states.passive.isConnecting)
        pair.exchange()
        #expect(pair.isConnected)
        let (one, other) = (try #require(pair.states.active.keys), try #require(pair.states.passive.keys))
        #expect(one.suite == .aes128GCM)
        for (from, to) in [(one, other), (other, one)] {
            var sender = SRTPSender(SRTPKeys(from.sending))
            var receiver = SRTPReceiver(SRTPKeys(to.receiving))
            #expect(try receiver.unprotected(sender.protected(Packets.media(1))) == Packets.media(1))
        }
        #expect(pair.sent.allSatisfy { $0.datagram.count <= 1200 })
        #expect(pair.timeouts == [nil, nil])
    }

    @Test(
        arguments: [
            ("SRTP_AES128_CM_SHA1_80", .aes128CM80), ("SRTP_AEAD_AES_256_GCM", .aes256GCM),
            ("SRTP_AES128_CM_SHA1_32:SRTP_AES128_CM_SHA1_80", .aes128CM80),
        ] as [(String, SRTPSuite)]
    )
    func `a peer that knows one suite gets it`(profiles: String, suite: SRTPSuite) throws {
        let identity = try DTLSIdentity(profiles: profiles)
        let (calling, called) = (try DTLSPair(identity, DTLSPair.other), try DTLSPair(DTLSPair.one, identity))
        calling.exchange()
        called.exchange()
        #expect(calling.isConnected && calling.states.active.keys?.suite == suite)
        #expect(called.isConnected && called.states.passive.keys?.suite == suite)
    }

    @Test func `a peer that knows no suite of ours is refused, and hears it`() throws {
        let identity = try DTLSIdentity(profiles: "SRTP_AES128_CM_SHA1_32")
        for isActive in [true, false] {
            let pair = isActive ? try DTLSPair(identity, DTLSPair.other) : try DTLSPair(DTLSPair.one, identity)
            pair.exchange()
            #expect(pair.states.active.error == .noProfile)
            #expect(pair.states.passive.error == .alert("handshake failure"))
        }
    }

    // MARK: Certificates

    @Test func `another certificate than the announced one is refused on both sides, and the peer hears it`() throws {
        let wrong = Fingerprint(hash: "sha-256", bytes: [UInt8](repeating: 1, count: 32))
        let pair = try DTLSPair(activeExpects: [wrong])
        pair.exchange()
        #expect(
            pair.states.active.error == .wrongFingerprint(expected: [wrong], actual: DTLSPair.other.fingerprint)
        )
        #expect(pair.states.passive.error == .alert("bad certificate"))
        let second = try DTLSPair(passiveExpects: [wrong])
        second.exchange()
        #expect(second.states.active.error == .alert("bad certificate"))
        #expect(
            second.states.passive.error == .wrongFingerprint(expected: [wrong], actual: DTLSPair.one.fingerprint)
        )
    }

    @Test func `one of several fingerprints has to fit, by any hash of SHA-2`() throws {
        for (hash, count) in [("sha-384", 48), ("sha-512", 64)] {
            let wrong = Fingerprint(hash: hash, bytes: [UInt8](repeating: 1, count: count))
            let refused = try DTLSPair(activeExpects: [wrong])
            refused.exchange()
            guard case .wrongFingerprint(_, let actual)? = refused.states.active.error else {
                Issue.record("\(refused.states.active)")
                continue
            }
            #expect(actual.hash == hash && actual.bytes.count == count)
            let pair = try DTLSPair(activeExpects: [Fingerprint(hash: "sha-1", bytes: [1]), wrong, actual])
            pair.exchange()
            #expect(pair.isConnected)
        }
    }

    @Test(arguments: ["sha-1", "md5", "sha-3"]) func `a hash that can be forged, or is unknown, does not count`(
        hash: String
    ) throws {
        let bytes = DTLSPair.other.fingerprint.bytes
        let fingerprints = [Fingerprint(hash: hash, bytes: Array(bytes.prefix(20)))]
        #expect(throws: DTLSError.noUsableFingerprint) { try DTLSPair(activeExpects: fingerprints) }
        #expect(throws: DTLSError.noUsableFingerprint) { try DTLSPair(passiveExpects: []) }
    }

    @Test func `a peer without a certificate is refused`() throws {
        let bare = try DTLSIdentity(showsCertificate: false)
        let pair = try DTLSPair(bare, DTLSPair.other)
        pair.exchange()
        #expect(pair.states.passive.error == .protocolFailure("peer did not return a certificate"))
        #expect(pair.states.active.error == .alert("handshake failure"))
        let second = try DTLSPair(DTLSPair.one, bare)
        second.exchange()
        #expect(second.states.active.error == .alert("handshake failure"))
        #expect(second.states.passive.error == .protocolFailure("no shared cipher"))
    }

    @Test func `associations of one identity have keys of their own`() throws {
        let (first, second) = (try DTLSPair(), try DTLSPair())
        for datagram in first.active.takeDatagrams() { first.passive.receive(datagram.span) }
        second.exchange()
        for datagram in first.passive.takeDatagrams() { first.active.receive(datagram.span) }
        first.exchange()
        #expect(first.isConnected && second.isConnected)
        let (one, other) = (try #require(first.states.active.keys), try #require(second.states.active.keys))
        #expect(!one.sending.equals(other.sending) && !one.receiving.equals(other.receiving))
        let itself = DTLSPair.one
        let alone = try DTLSPair(itself, itself)
        alone.exchange()
        #expect(alone.isConnected)
        #expect(DTLSPair.one.fingerprint != DTLSPair.other.fingerprint)
    }

    // MARK: Ends

    @Test(arguments: [DTLSRole.active, .passive]) func `the other side hears of the end`(role: DTLSRole) throws {
        let pair = try DTLSPair()
        pair.exchange()
        if role == .active { pair.active.close() } else { pair.passive.close() }
        pair.exchange()
        #expect(pair.states.active.isClosed && pair.states.passive.isClosed)
        let count = pair.sent.count
        pair.active.close()
        pair.passive.close()
        for (_, datagram) in pair.sent {
            pair.active.receive(datagram.span)
            pair.passive.receive(datagram.span)
        }
        pair.exchange()
        #expect(pair.sent.count == count)
    }

    @Test func `before the handshake the end is silent`() throws {
        let pair = try DTLSPair()
        _ = pair.active.takeDatagrams()
        pair.active.close()
        pair.passive.close()
        pair.active.handleTimeout()
        pair.exchange()
        #expect(
            pair.sent.isEmpty && pair.states.active.isClosed && pair.states.passive.isClosed
                && pair.timeouts == [nil, nil]
        )
    }

    // MARK: Networks

    @Test func `datagrams that come twice, and all of them once more, change nothing`() throws {
        let pair = try DTLSPair()
        pair.exchange { datagrams, _ in datagrams.flatMap { [$0, $0] } }
        #expect(pair.isConnected)
        for (role, datagram) in pair.sent {
            if role == .active { pair.active.receive(datagram.span) } else { pair.passive.receive(datagram.span) }
        }
        pair.exchange()
        #expect(pair.isConnected)
        pair.active.close()
        pair.exchange()
        #expect(pair.states.passive.isClosed)
    }

    /// As from browsers, whose hello is larger than a datagram.
    @Test func `a hello in two datagrams is put together`() throws {
        let pair = try DTLSPair()
        pair.exchange { datagrams, role in
            datagrams.flatMap { datagram -> [[UInt8]] in
                guard role == .passive else { return [datagram] }
                return records(of: datagram).flatMap(Self.fragments(ofHello:))
            }
        }
        #expect(pair.isConnected)
    }

    @Test func `datagrams that are cut anywhere are ignored`() throws {
        let pair = try DTLSPair()
        pair.exchange { datagrams, _ in
            datagrams.flatMap { datagram in (0..<datagram.count).map { Array(datagram[..<$0]) } + [datagram] }
        }
        #expect(pair.isConnected)
        pair.passive.close()
        pair.exchange { datagrams, _ in
            datagrams.flatMap { datagram in (0..<datagram.count).map { Array(datagram[..<$0]) } + [datagram] }
        }
        #expect(pair.states.active.isClosed)
    }

    @Test func `bytes of other protocols, and too many of them, are ignored`() throws {
        var generator = SeededGenerator(seed: 5)
        let pair = try DTLSPair()
        func noise() -> [[UInt8]] {
            let count = Int(generator.next() % 300)
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            // One of application data under keys that nobody has.
            let record = [
                23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, bytes.first ?? 0, UInt8(count >> 8), UInt8(count & 0xFF),
            ]
            return [bytes, record + bytes, [22, 0xFE, 0xFD] + bytes, [0x80] + bytes, []]
        }
        let rounds = thorough(500, quick: 50)
        let large = [22, 0xFE, 0xFD] + [UInt8](repeating: 0, count: 60_000)
        // What has the epoch of a handshake under way may end it; these have another one.
        func harmless() -> [[UInt8]] { noise().filter { $0.count < 5 || $0[3] != 0 || $0[4] != 0 } + [large] }
        pair.exchange { datagrams, _ in (0..<rounds).flatMap { _ in harmless() } + datagrams }
        #expect(pair.isConnected)
        let count = pair.sent.count
        for datagram in (0..<rounds).flatMap({ _ in noise() }) {
            pair.active.receive(datagram.span)
            pair.passive.receive(datagram.span)
        }
        pair.exchange()
        #expect(pair.isConnected && pair.sent.count == count)
    }

    /// By itself, OpenSSL 3.0 gives up for good when a record under keys is too short for them.
    @Test(arguments: ["ECDHE+AESGCM", "ECDHE+CHACHA20"])
    func `records that are too short or hide others end nothing, whoever sends them`(ciphers: String) throws {
        let identity = try DTLSIdentity(ciphers: ciphers)
        for type in 20...23 as ClosedRange<UInt8> {
            for count in [0, 1, 7, 8, 15, 16, 17, 23, 24, 25] as [UInt8] {
                let short =
                    [type, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 9, 0, count] + [UInt8](repeating: 1, count: Int(count))
                let hiding = ([0xFD, 0xFF, 0xFC] as [UInt8]).flatMap { version in
                    ([0, 1, 2] as [UInt8]).map { epoch in
                        [type, 0xFE, version, 0, epoch, 0, 0, 0, 0, 0, 8, 0, UInt8(short.count)] + short
                    }
                }
                let pair = try DTLSPair(DTLSPair.one, identity)
                pair.exchange { datagrams, _ in datagrams.flatMap { [short, $0] } }
                for datagram in [short] + hiding {
                    pair.active.receive(datagram.span)
                    pair.passive.receive(datagram.span)
                }
                pair.exchange()
                #expect(pair.isConnected, "type \(type), \(count) bytes")
                pair.active.close()
                pair.exchange()
                #expect(pair.states.passive.isClosed)
            }
        }
    }

    /// It fails, or waits for the true one, or connects if the byte did not matter; never are there keys that differ.
    @Test func `a byte that is changed anywhere does no harm`() throws {
        let whole = try DTLSPair()
        whole.exchange()
        let counts = whole.sent.map(\.datagram.count)
        for (index, count) in counts.enumerated() {
            for place in thorough(0..<count, each: 11) {
                let pair = try DTLSPair()
                var seen = 0
                pair.exchange { datagrams, _ in
                    datagrams.map { datagram in
                        defer { seen += 1 }
                        guard seen == index, place < datagram.count else { return datagram }
                        var changed = datagram
                        changed[place] ^= 0x41
                        return changed
                    }
                }
                let isOneConnected = pair.states.active.keys != nil && pair.states.passive.keys != nil
                #expect(!isOneConnected || pair.isConnected, "datagram \(index), byte \(place)")
            }
        }
    }

    @Test func `errors tell what happened and what to do`() throws {
        let expected = [Fingerprint(hash: "sha-256", bytes: [0xAA, 0x0B])]
        let error = DTLSError.wrongFingerprint(expected: expected, actual: Fingerprint(hash: "sha-256", bytes: [1, 2]))
        #expect(
            "\(error)" == """
                The certificate of the other side is sha-256 01:02, and its description announced sha-256 AA:0B. \
                Somebody may be in between: hang up.
                """
        )
        #expect("\(DTLSError.alert("bad certificate"))".contains("\"bad certificate\""))
        #expect("\(DTLSError.noProfile)".contains("AEAD_AES_256_GCM. Have it"))
    }

    /// A hello as two records; later ones keep their order by a number that is higher by one.
    private static func fragments(ofHello record: [UInt8]) -> [[UInt8]] {
        var record = record
        guard record[3...4] == [0, 0] else { return [record] }
        let (isHello, body) = (record[0] == 22 && record[13] == 1, record.dropFirst(25))
        if !isHello {
            record[10] += 1
            return [record]
        }
        func fragment(_ number: UInt8, _ part: ArraySlice<UInt8>) -> [UInt8] {
            let (offset, count) = (part.startIndex - body.startIndex, part.count)
            return record[..<10] + [number] + bytes(count + 12, 2) + record[13..<19] + bytes(offset, 3)
                + bytes(count, 3) + part
        }
        return [fragment(0, body.prefix(50)), fragment(1, body.dropFirst(50))]
    }

    private static func bytes(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(value >> (8 * $0) & 0xFF) }
    }
}
