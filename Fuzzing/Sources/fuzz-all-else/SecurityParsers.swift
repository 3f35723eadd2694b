import FuzzDriver

@testable import CallBasics
@testable import MediaTransport
@testable import SDP

/// What is fuzzed of secured media and of ways through NATs.
enum SecurityParsers {
    /// All that can be asked for of a message of STUN is.
    static func stun(_ bytes: Span<UInt8>) throws {
        let bytes = array(bytes)
        guard let message = STUNMessage(parsing: bytes) else { return }
        for number in [1...0x30 as ClosedRange<UInt16>, 0x8000...0x8030].joined() {
            let attribute = STUNAttribute(rawValue: number)
            precondition(message[attribute].map { $0.count + STUNMessage.headerByteCount < bytes.count } ?? true)
            _ = (message.text(attribute), message.address(attribute), message.number(attribute))
            _ = message.tieBreaker(attribute)
        }
        _ = (message.error, message.channel, message.peerAddresses, message.notUnderstood)
        _ = (message.hasRightFingerprint, message.isSigned(with: key))
    }

    /// What comes by a connection to a server of TURN, in pieces: what is read can be written, and what waits is bounded.
    static func turnStream(_ bytes: Span<UInt8>) throws {
        var stream = TURNStream()
        var (rest, count) = (array(bytes)[...], 0)
        while let size = rest.first {
            let piece = rest.dropFirst().prefix(Int(size))
            rest = rest.dropFirst(1 + piece.count)
            stream.append(piece)
            while let message = try stream.next() {
                precondition(TURNStream.framed(message).map { $0.count - message.count < 4 } ?? false)
                count += message.count
            }
        }
        precondition(count <= bytes.count)
    }

    private static let key = STUNKey(shortTerm: local.password)
    private static let local = ICECredentials(userFragment: "ours", password: "password-of-our-own-side")
    private static let remote = ICECredentials(userFragment: "abcd", password: "password-of-the-other-side")

    private static func address(_ number: UInt8) -> SocketAddress {
        SocketAddress(ipv4: 0xCB00_7100 + UInt32(number & 7), port: 4000 + UInt16(number))
    }

    /// Each piece: time, who sends it, what it is, count, bytes.
    private static func forEachPiece(
        of bytes: Span<UInt8>,
        _ body: (_ now: MediaTime, _ source: UInt8, _ kind: UInt8, _ piece: [UInt8]) -> Void
    ) {
        var (bytes, now) = (array(bytes)[...], MediaTime.zero)
        while bytes.count >= 4 {
            let head = Array(bytes.prefix(4))
            now = now + .milliseconds(Int64(head[0]) * Int64(head[0]))
            let piece = bytes.dropFirst(4).prefix(Int(head[3]))
            body(now, head[1], head[2], Array(piece))
            bytes = bytes.dropFirst(4 + piece.count)
        }
    }

    /// A message whose attributes are the bytes, signed as the other side, or the relay, would.
    private static func signed(_ type: UInt8, _ attributes: [UInt8], _ transaction: [UInt8], _ key: STUNKey) -> [UInt8]
    {
        var bytes: [UInt8] = [type >> 5 & 1, type & 0x1F, 0, 0, 0x21, 0x12, 0xA4, 0x42] + transaction
        bytes += attributes.prefix(attributes.count / 4 * 4)
        let proof = STUNProof.integrity(bytes, upTo: bytes.count, key, byteCount: 20, isSHA256: false)
        bytes += [0, 8, 0, 20] + proof
        (bytes[2], bytes[3]) = (UInt8((bytes.count - 20) >> 8), UInt8((bytes.count - 20) & 0xFF))
        return bytes
    }

    /// An agent with a relay, which anybody may send anything, at any time: bytes as they are, or what proves the password.
    static func iceAgent(_ bytes: Span<UInt8>) throws {
        let server = SocketAddress(ipv4: 0xC633_6401, port: 3478)
        let candidates = [ICECandidate(.host, address(1), priority: 9), ICECandidate(.relay, address(2), priority: 3)]
        let session = AgreedICE.Session(local: local, remote: remote)
        let agreed = AgreedICE(session, isFull: true, isControlling: bytes.count & 1 == 0, candidates: candidates)
        var relay = TURNAllocation(at: server, user: "a", password: "b", SeededGenerator(seed: 1), at: .zero)
        let relayKey = STUNKey(user: "a", realm: "r", password: "b")
        var asked = relay.takeDatagrams().map(\.bytes)
        if bytes.count & 2 == 0 { allocate(&relay, &asked, relayKey, server) }
        var agent = RoutedAgent(agreed, relay, tag: 7, SeededGenerator(seed: 2), at: .zero)
        forEachPiece(of: bytes) { now, source, kind, piece in
            let sender = source & 0x80 == 0 ? address(source) : server
            let transaction = asked.last.map { Array($0[8..<20]) } ?? [UInt8](repeating: source, count: 12)
            switch kind & 3 {
            case 0: _ = agent.take(piece, from: sender, at: now)
            case 1:
                let name: [UInt8] = [0, 6, 0, 9] + Array("ours:abcd".utf8) + [0, 0, 0, 0x24, 0, 4, 0, 0, 0, kind]
                _ = agent.take(signed(1, name + piece, transaction, key), from: sender, at: now)
            case 2:
                let key = sender == server ? relayKey : STUNKey(shortTerm: remote.password)
                _ = agent.take(signed(kind >> 2, piece, transaction, key), from: sender, at: now)
            default: agent.send(piece, by: Route(address(kind), isRelayed: true), at: now)
            }
            agent.advance(to: now)
            let sent = agent.takeDatagrams()
            asked += sent.map(\.bytes).filter { $0.count >= 20 && $0[0] < 4 }
            // Nothing is answered by more than a few: nobody is reached by way of this side.
            precondition(sent.count < 512)
        }
        precondition(agent.next.map { $0 >= .zero } ?? true)
    }

    /// Has the relay give an address.
    private static func allocate(
        _ relay: inout TURNAllocation,
        _ asked: inout [[UInt8]],
        _ key: STUNKey,
        _ server: SocketAddress
    ) {
        func transaction() -> STUNMessage.Transaction? {
            asked.last.flatMap { STUNMessage(parsing: $0)?.transaction }
        }
        guard let first = transaction() else { return }
        var writer = STUNWriter(.failure, .allocate, first)
        writer.append(errorCode: 401, reason: "")
        writer.append(.realm, "r")
        writer.append(.nonce, "n")
        _ = relay.take(writer.finish(withFingerprint: false), at: .zero)
        asked += relay.takeDatagrams().map(\.bytes)
        guard let second = transaction() else { return }
        var answer = STUNWriter(.success, .allocate, second)
        answer.append(.xorRelayedAddress, server.with(port: 50_000))
        answer.append(.lifetime, number: 600 as UInt32)
        answer.sign(with: key)
        _ = relay.take(answer.finish(withFingerprint: false), at: .zero)
        precondition(relay.relayed != nil)
    }

    /// What comes to a leg whose keys are known: bytes as they are, and packets that the other side has protected.
    static func srtp(_ bytes: Span<UInt8>) throws {
        let suites: [SRTPSuite] = [.aes128CM80, .aes128GCM, .aes256CM32, .aes256GCM]
        let suite = suites[Int(bytes.isEmpty ? 0 : bytes[0] & 3)]
        guard
            let key = SRTPMasterKey(
                suite,
                keyAndSalt: [UInt8](repeating: 5, count: suite.keyByteCount + suite.saltByteCount)
            )
        else { return }
        var sender = SRTPSender(SRTPKeys(key))
        var receiver = SRTPReceiver(SRTPKeys(key))
        forEachPiece(of: bytes) { _, source, kind, piece in
            var buffer = piece + [UInt8](repeating: 0, count: 64)
            var span = buffer.mutableSpan
            let isControl = kind & 1 == 0
            var count: Int? = piece.count
            if kind & 2 == 0 {
                let result =
                    isControl
                    ? sender.protectControl(&span, count: piece.count) : sender.protect(&span, count: piece.count)
                count = try? result.get()
                if let count, count > 0, kind & 4 == 0 { span[Int(source) % count] ^= kind }
            }
            guard let count else { return }
            let result =
                isControl ? receiver.unprotectControl(&span, count: count) : receiver.unprotect(&span, count: count)
            precondition((try? result.get()).map { $0 <= count } ?? true)
        }
    }

    /// Lines of a description about keys and ways: what is agreed on can be used, or is nothing.
    static func description(_ bytes: Span<UInt8>) throws {
        let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n"
        let isSDES = bytes.count & 1 == 0
        let medium = "m=audio 5000 \(isSDES ? "RTP/SAVP" : "UDP/TLS/RTP/SAVP") 0\r\na=rtpmap:0 PCMU/8000\r\n"
        let text = head + medium + String(decoding: array(bytes), as: UTF8.self) + "\r\n"
        let offer = try SessionDescription(parsing: text)
        for media in offer.media {
            _ = media.keyingAttributes.candidates.map { ICECandidate($0, from: address(1)) }
            _ = (media.hasICEMismatch, ICECredentials(media.keyingAttributes))
            for line in media.keyingAttributes.cryptoLines {
                _ = AgreedKeys([line], [line], isOfferer: true).flatMap { SDESAgreement($0) }
            }
        }
    }
}
