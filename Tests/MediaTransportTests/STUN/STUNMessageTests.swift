import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// Messages of RFC 5769 and of another implementation, whole and spoiled, and what is written here.
@Suite(.tags(.rfc)) struct STUNMessageTests {
    /// A message with what it says; with `how` it was spoiled, and must not be taken.
    struct Vector: Decodable, Sendable, CustomTestStringConvertible {
        let id, kind, hex, password: String
        let fingerprint: Bool?
        let username, realm, nonce, how, xorMappedAddress, xorMappedAddressHex: String?
        let error: Int?
        let port: UInt16?
        let priority: UInt32?

        var testDescription: String { "\(id), \(kind)" }

        var key: STUNKey {
            guard let username, let realm else { return STUNKey(shortTerm: password) }
            return STUNKey(user: username, realm: realm, password: password, isSHA256: kind == "sha256")
        }
    }

    static let vectors = Fixture.vectors("stun.json", as: Vector.self)

    @Test func `there are vectors, whole ones and spoiled ones`() {
        #expect(Self.vectors.count { $0.how == nil } == 60 && Self.vectors.count { $0.how != nil } == 30)
    }

    @Test(arguments: vectors.filter { $0.how == nil }) func `what came from elsewhere is read`(
        _ vector: Vector
    ) throws {
        let message = try #require(STUNMessage(parsing: bytes(vector.hex)))
        #expect(message.isSigned(with: vector.key) && message.notUnderstood.isEmpty)
        #expect(!message.isSigned(with: STUNKey(shortTerm: "another")))
        #expect(message.hasRightFingerprint == (vector.fingerprint == true ? true : nil))
        #expect(message.text(.username) == vector.username && message.text(.realm) == vector.realm)
        #expect(message.text(.nonce) == vector.nonce && message.error?.code == vector.error)
        #expect(message.number(.priority) == vector.priority)
        let address = message.address(.xorMappedAddress)
        if let told = vector.xorMappedAddress { #expect(address?.description == told) }
        if let digits = vector.xorMappedAddressHex {
            let halves = try #require(address?.halves)
            #expect(bytes(digits).number(at: 0, UInt64.self) == halves.high && address?.port == vector.port)
            #expect(bytes(digits).number(at: 8, UInt64.self) == halves.low)
        }
    }

    @Test(arguments: vectors.filter { $0.how != nil }) func `what is spoiled is not taken`(_ vector: Vector) {
        guard let message = STUNMessage(parsing: bytes(vector.hex)) else { return }
        #expect(!message.isSigned(with: vector.key))
    }

    // MARK: RFC 5769

    private static let password = "VOkJxbRl1RmTxUk/WvJxBt"
    private static let request = bytes(
        "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008"
            + "932ff9b151263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2"
            + "80280004e57a3bcf"
    )

    /// Section 2.1.
    @Test func `a request of ICE`() throws {
        let message = try #require(STUNMessage(parsing: Self.request))
        #expect(message.kind == .request && message.method == .binding)
        #expect(message.text(.software) == "STUN test client" && message.text(.username) == "evtj:h6vY")
        #expect(message.number(.priority) == 0x6E00_01FF)
        #expect(message.tieBreaker(.iceControlled) == 0x932F_F9B1_5126_3B36)
        #expect(message.isSigned(with: STUNKey(shortTerm: Self.password)) && message.hasRightFingerprint == true)
    }

    /// Section 2.2.
    @Test func `a response with an address of IPv4`() throws {
        let message = try #require(
            STUNMessage(
                parsing: bytes(
                    "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643"
                        + "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96"
                )
            )
        )
        #expect(message.kind == .success && message.text(.software) == "test vector")
        #expect(message.address(.xorMappedAddress) == SocketAddress(host: "192.0.2.1", port: 32853))
        #expect(message.isSigned(with: STUNKey(shortTerm: Self.password)) && message.hasRightFingerprint == true)
    }

    /// Section 2.4.
    @Test func `a request with a user's key`() throws {
        let message = try #require(
            STUNMessage(
                parsing: bytes(
                    "000100602112a44278ad3433c6ad72c029da412e00060012e3839ee38388e383aae38383e382afe382b900000015001c"
                        + "662f2f3439396b39353464364f4c33346f4c394653547679363473410014000b6578616d706c652e6f726700"
                        + "00080014f67024656dd64a3e02b8e0712e85c9a28ca89666"
                )
            )
        )
        #expect(message.isSigned(with: STUNKey(user: "マトリックス", realm: "example.org", password: "TheMatrIX")))
        #expect(message.hasRightFingerprint == nil)
    }

    // MARK: Written here

    @Test(arguments: [("192.0.2.1", false), ("2001:db8::1", false), ("192.0.2.1", true)])
    func `what is written is read`(host: String, isSHA256: Bool) throws {
        var generator = SeededGenerator(seed: 1)
        let transaction = STUNMessage.Transaction(using: &generator)
        let address = try #require(SocketAddress(host: host, port: 4000))
        let key = STUNKey(user: "u", realm: "r", password: "p", isSHA256: isSHA256)
        var writer = STUNWriter(.failure, .channelBind, transaction)
        writer.append(.username, "ab:c")
        writer.append(.xorPeerAddress, address)
        writer.append(.xorPeerAddress, address.with(port: 9))
        writer.append(.mappedAddress, address)
        writer.append(.channelNumber, number: 0x4001_0000 as UInt32)
        writer.append(.lifetime, number: 600 as UInt32)
        writer.append(errorCode: 438, reason: "Stale Nonce")
        writer.append(unknown: [.priority])
        writer.sign(with: key, isSHA256: isSHA256)
        let message = try #require(STUNMessage(parsing: writer.finish(withFingerprint: true)))
        #expect(message.kind == .failure && message.method == .channelBind && message.transaction == transaction)
        #expect(message.text(.username) == "ab:c" && message.number(.lifetime) == 600 && message.channel == 0x4001)
        #expect(
            message.peerAddresses == [address, address.with(port: 9)] && message.address(.mappedAddress) == address
        )
        #expect(message.error?.code == 438 && message.error?.reason == "Stale Nonce")
        #expect(message[.unknownAttributes].map(Array.init) == [0, 0x24])
        #expect(message.isSigned(with: key) && message.hasRightFingerprint == true)
    }

    @Test(arguments: [STUNMessage.Class.request, .indication, .success, .failure])
    func `classes and methods are told apart`(kind: STUNMessage.Class) throws {
        var generator = SeededGenerator(seed: 2)
        for method in [STUNMessage.Method.binding, .allocate, .send, .data, .channelBind] {
            let writer = STUNWriter(kind, method, STUNMessage.Transaction(using: &generator))
            let message = try #require(STUNMessage(parsing: writer.finish(withFingerprint: false)))
            #expect(message.kind == kind && message.method == method)
        }
    }

    @Test func `the first of a kind counts, and nothing behind the signature`() throws {
        var generator = SeededGenerator(seed: 3)
        let key = STUNKey(shortTerm: "x")
        var writer = STUNWriter(.request, .binding, STUNMessage.Transaction(using: &generator))
        writer.append(.username, "first")
        writer.append(.username, "second")
        writer.append(STUNAttribute(rawValue: 0x7001), [1])
        writer.append(STUNAttribute(rawValue: 0xC057), [1])
        writer.sign(with: key)
        writer.append(.priority, number: 7 as UInt32)
        writer.append(STUNAttribute(rawValue: 0x7002), [1])
        let message = try #require(STUNMessage(parsing: writer.finish(withFingerprint: true)))
        #expect(message.text(.username) == "first" && message.number(.priority) == nil)
        #expect(message.notUnderstood == [STUNAttribute(rawValue: 0x7001)])
        #expect(message.isSigned(with: key) && message.hasRightFingerprint == true)
    }

    // MARK: Hostile

    @Test func `a message that is cut or changed anywhere is refused, or not signed`() throws {
        let key = STUNKey(shortTerm: Self.password)
        for count in 0..<Self.request.count {
            #expect(STUNMessage(parsing: Array(Self.request[..<count])) == nil, "\(count)")
        }
        // Behind the signature is FINGERPRINT alone.
        for place in 0..<Self.request.count - 8 {
            for change in [0x01, 0x80] as [UInt8] {
                var changed = Self.request
                changed[place] ^= change
                let message = STUNMessage(parsing: changed)
                #expect(message?.isSigned(with: key) != true && message?.hasRightFingerprint != true, "\(place)")
            }
        }
    }

    @Test func `random bytes are read without a trap`() {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<thorough(20_000, quick: 2000) {
            let count = Int(generator.next() % 30) * 4
            var packet = (0..<20 + count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            packet.replaceSubrange(..<8, with: [0x01, 0x01, 0, UInt8(count), 0x21, 0x12, 0xA4, 0x42])
            // Attributes of known kinds, of lengths that may fit.
            if count >= 4 {
                let known = STUNAttribute.understood.map(\.rawValue).sorted()
                let attribute = known[Int(generator.next() % UInt64(known.count))]
                packet.replaceSubrange(20..<24, with: [0, UInt8(attribute), 0, UInt8(generator.next() % 24)])
            }
            guard let message = STUNMessage(parsing: packet) else { continue }
            for attribute in STUNAttribute.understood {
                _ = (message.address(attribute), message.text(attribute), message.number(attribute))
            }
            _ = (message.error, message.channel, message.peerAddresses, message.notUnderstood)
            #expect(message.hasRightFingerprint != true && !message.isSigned(with: STUNKey(shortTerm: "x")))
        }
    }

    @Test func `a key tells nothing of itself`() {
        var dumped = ""
        dump(STUNKey(shortTerm: "secret"), to: &dumped)
        #expect(!"\(STUNKey(shortTerm: "secret")) \(dumped)".contains("115"))
    }
}
