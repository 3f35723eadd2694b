import CallBasics
import TestSupport
import Testing

@testable import MediaTransport

/// A sender and a receiver, and what a network and a forger do between them.
@Suite struct SRTPSessionTests {
    @Test(arguments: SRTPSuite.allCases) func `what is sent is read, in the clear by nobody`(suite: SRTPSuite) throws {
        var sender = SRTPSender(try Packets.keys(suite))
        var receiver = SRTPReceiver(try Packets.keys(suite))
        for sequence in 0...9 as ClosedRange<UInt16> {
            let packet = Packets.media(sequence)
            let sent = try sender.protected(packet)
            #expect(sent.count == packet.count + suite.tagByteCount && sent[..<12] == packet[..<12])
            #expect(sent[12..<packet.count] != packet[12...])
            #expect(try receiver.unprotected(sent) == packet)
            let control = try sender.protectedControl(Packets.control())
            #expect(control[..<8] == Packets.control()[..<8] && control[8..<16] != Packets.control()[8...])
            #expect(try receiver.unprotectedControl(control) == Packets.control())
        }
    }

    @Test(arguments: SRTPSuite.allCases) func `a packet that is changed or cut anywhere is refused, and moves nothing`(
        suite: SRTPSuite
    ) throws {
        var sender = SRTPSender(try Packets.keys(suite))
        var receiver = SRTPReceiver(try Packets.keys(suite))
        let (sent, control) = (
            try sender.protected(Packets.media(7)), try sender.protectedControl(Packets.control())
        )
        for place in sent.indices {
            for change in [0x01, 0x80] as [UInt8] {
                var changed = sent
                changed[place] ^= change
                #expect(throws: SRTPRefusal.self, "\(place)") { try receiver.unprotected(changed) }
            }
            #expect(throws: SRTPRefusal.self) { try receiver.unprotected(Array(sent[..<place])) }
        }
        for place in control.indices {
            var changed = control
            changed[place] ^= 0x01
            #expect(throws: SRTPRefusal.self, "\(place)") { try receiver.unprotectedControl(changed) }
            #expect(throws: SRTPRefusal.self) { try receiver.unprotectedControl(Array(control[..<place])) }
        }
        #expect(try receiver.unprotected(sent) == Packets.media(7))
        #expect(try receiver.unprotectedControl(control) == Packets.control())
    }

    @Test func `random bytes are refused`() throws {
        var receiver = SRTPReceiver(try Packets.keys(.aes128GCM))
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<thorough(20_000, quick: 2000) {
            var packet = (0..<Int(generator.next() % 80)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            if !packet.isEmpty { packet[0] = packet[0] & 0x3F | 0x80 }
            #expect(throws: SRTPRefusal.self) { try receiver.unprotected(packet) }
            #expect(throws: SRTPRefusal.self) { try receiver.unprotectedControl(packet) }
        }
    }

    @Test func `what came before, or long ago, is refused`() throws {
        var sender = SRTPSender(try Packets.keys())
        var receiver = SRTPReceiver(try Packets.keys())
        let packets = try (0..<200).map { try sender.protected(Packets.media($0)) }
        for packet in packets.dropFirst(5) { _ = try receiver.unprotected(packet) }
        #expect(throws: SRTPRefusal.replayed) { try receiver.unprotected(packets[199]) }
        #expect(throws: SRTPRefusal.replayed) { try receiver.unprotected(packets[80]) }
        #expect(throws: SRTPRefusal.old) { try receiver.unprotected(packets[3]) }
        let control = try sender.protectedControl(Packets.control())
        _ = try receiver.unprotectedControl(control)
        #expect(throws: SRTPRefusal.replayed) { try receiver.unprotectedControl(control) }
    }

    /// Numbers begin anew, twice, while a third of the packets is lost and each two change places.
    @Test(arguments: [.aes128CM80, .aes256GCM] as [SRTPSuite])
    func `cycles are counted over losses`(suite: SRTPSuite) throws {
        var sender = SRTPSender(try Packets.keys(suite))
        var receiver = SRTPReceiver(try Packets.keys(suite))
        let step = 7
        let numbers = stride(from: 32_000, to: 3 * 65_536, by: step).filter { $0 % 3 != 0 }
        for place in stride(from: 0, to: numbers.count - 1, by: 2) {
            let pair = numbers[place...place + 1].map { Packets.media(UInt16(truncatingIfNeeded: $0)) }
            let sent = try pair.map { try sender.protected($0) }
            #expect(try receiver.unprotected(sent[1]) == pair[1])
            #expect(try receiver.unprotected(sent[0]) == pair[0])
        }
    }

    @Test func `a number protects one packet`() throws {
        var sender = SRTPSender(try Packets.keys())
        _ = try sender.protected(Packets.media(10))
        #expect(throws: SRTPRefusal.numberUsed) { try sender.protected(Packets.media(10)) }
        #expect(throws: SRTPRefusal.numberUsed) { try sender.protected(Packets.media(9)) }
        _ = try sender.protected(Packets.media(9, ssrc: 5))
        _ = try sender.protected(Packets.media(11))
    }

    @Test func `a key ends with its lifetime, and another one goes on`() throws {
        var sender = SRTPSender(try Packets.keys(lifetime: 3))
        for sequence in 0..<3 as Range<UInt16> { _ = try sender.protected(Packets.media(sequence)) }
        #expect(throws: SRTPRefusal.exhausted) { try sender.protected(Packets.media(3)) }
        _ = sender.exchange(try Packets.keys(seed: 2))
        _ = try sender.protected(Packets.media(3))
        var last = SRTPSender(try Packets.keys(), cycles: 0, controlIndex: 1 << 31 - 2)
        _ = try last.protectedControl(Packets.control())
        #expect(throws: SRTPRefusal.exhausted) { try last.protectedControl(Packets.control()) }
    }

    /// Two texts under one key and one index would give each other away.
    @Test func `a key that comes back is used for no index twice`() throws {
        let packet = Packets.media(1)
        var sender = SRTPSender(try Packets.keys())
        let (media, control) = (try sender.protected(packet), try sender.protectedControl(Packets.control()))
        for seed in [2, 1] as [UInt8] { _ = sender.exchange(try Packets.keys(seed: seed)) }
        #expect(throws: SRTPRefusal.numberUsed) { try sender.protected(packet) }
        let next = try sender.protectedControl(Packets.control())
        #expect(next != control && next.count == control.count && media.count > packet.count)
        var receiver = SRTPReceiver(try Packets.keys())
        #expect(try receiver.unprotectedControl(control) == receiver.unprotectedControl(next))
    }

    @Test(arguments: [.aes128CM80, .aes128GCM] as [SRTPSuite])
    func `the identifier of the key is in each packet, and another one is refused`(suite: SRTPSuite) throws {
        var sender = SRTPSender(try Packets.keys(suite, identifier: [1, 2]))
        var receiver = SRTPReceiver(try Packets.keys(suite, identifier: [1, 2]))
        var other = SRTPReceiver(try Packets.keys(suite, identifier: [1, 3]))
        let (sent, control) = (
            try sender.protected(Packets.media(1)), try sender.protectedControl(Packets.control())
        )
        #expect(throws: SRTPRefusal.otherKey) { try other.unprotected(sent) }
        #expect(throws: SRTPRefusal.otherKey) { try other.unprotectedControl(control) }
        #expect(try receiver.unprotected(sent) == Packets.media(1))
        #expect(try receiver.unprotectedControl(control) == Packets.control())
    }

    @Test(arguments: [.aes128CM80, .aes128GCM] as [SRTPSuite])
    func `RTCP in the clear is taken where it was agreed on, and signed all the same`(suite: SRTPSuite) throws {
        var sender = SRTPSender(try Packets.keys(suite, encryptsControl: false))
        var strict = SRTPReceiver(try Packets.keys(suite))
        var lenient = SRTPReceiver(try Packets.keys(suite, encryptsControl: false))
        var sent = try sender.protectedControl(Packets.control())
        #expect(sent.starts(with: Packets.control()))
        #expect(throws: SRTPRefusal.unencrypted) { try strict.unprotectedControl(sent) }
        #expect(try lenient.unprotectedControl(sent) == Packets.control())
        sent = try sender.protectedControl(Packets.control())
        sent[9] ^= 1
        #expect(throws: SRTPRefusal.unauthentic) { try lenient.unprotectedControl(sent) }
    }

    /// One that keeps its count of cycles, and one that begins anew.
    @Test(arguments: [.aes128CM80, .aes128GCM] as [SRTPSuite], [3, 0] as [UInt32])
    func `behind another key a peer may begin its cycles anew`(suite: SRTPSuite, cycles: UInt32) throws {
        var receiver = SRTPReceiver(try Packets.keys(suite), cycles: 3)
        var before = SRTPSender(try Packets.keys(suite), cycles: 3, controlIndex: 0)
        #expect(try receiver.unprotected(before.protected(Packets.media(500))) == Packets.media(500))
        _ = receiver.exchange(try Packets.keys(suite, seed: 9))
        var sender = SRTPSender(try Packets.keys(suite, seed: 9), cycles: cycles, controlIndex: 0)
        #expect(throws: SRTPRefusal.unauthentic) { try receiver.unprotected(before.protected(Packets.media(501))) }
        for sequence in 501...503 as ClosedRange<UInt16> {
            #expect(try receiver.unprotected(sender.protected(Packets.media(sequence))) == Packets.media(sequence))
        }
    }

    /// The number that is the first under the other key is the first of another cycle, too.
    @Test(arguments: [.aes128CM80, .aes256GCM] as [SRTPSuite])
    func `cycles go on where numbers begin anew with another key`(suite: SRTPSuite) throws {
        var sender = SRTPSender(try Packets.keys(suite))
        var receiver = SRTPReceiver(try Packets.keys(suite))
        #expect(try receiver.unprotected(sender.protected(Packets.media(65_530))) == Packets.media(65_530))
        _ = (sender.exchange(try Packets.keys(suite, seed: 9)), receiver.exchange(try Packets.keys(suite, seed: 9)))
        for sequence in 2...4 as ClosedRange<UInt16> {
            #expect(try receiver.unprotected(sender.protected(Packets.media(sequence))) == Packets.media(sequence))
        }
    }

    @Test func `behind another key numbers may begin anywhere`() throws {
        var receiver = SRTPReceiver(try Packets.keys())
        var before = SRTPSender(try Packets.keys())
        _ = try receiver.unprotected(before.protected(Packets.media(5)))
        _ = receiver.exchange(try Packets.keys(seed: 9))
        var sender = SRTPSender(try Packets.keys(seed: 9))
        #expect(try receiver.unprotected(sender.protected(Packets.media(60_000))) == Packets.media(60_000))
    }

    @Test func `the same key goes on as before`() throws {
        var sender = SRTPSender(try Packets.keys())
        var receiver = SRTPReceiver(try Packets.keys())
        let sent = try sender.protected(Packets.media(1))
        _ = try receiver.unprotected(sent)
        let same = try Packets.keys()
        #expect(receiver.exchange(same) === same && sender.exchange(same) === same)
        #expect(throws: SRTPRefusal.replayed) { try receiver.unprotected(sent) }
        #expect(throws: SRTPRefusal.numberUsed) { try sender.protected(Packets.media(1)) }
    }

    @Test func `eight sources are known, and the quietest makes room`() throws {
        var sender = SRTPSender(try Packets.keys())
        var receiver = SRTPReceiver(try Packets.keys())
        let first = try (1...9).map { try sender.protected(Packets.media(1, ssrc: $0)) }
        for packet in first[..<8] { _ = try receiver.unprotected(packet) }
        _ = try receiver.unprotected(sender.protected(Packets.media(2, ssrc: 1)))
        _ = try receiver.unprotected(first[8])
        #expect(throws: SRTPRefusal.replayed) { try receiver.unprotected(first[0]) }
        // The second one had been quiet for longest.
        #expect(try receiver.unprotected(first[1]) == Packets.media(1, ssrc: 2))
    }

    @Test func `a key tells nothing of itself`() throws {
        let master = try #require(SRTPMasterKey(.aes128CM80, keyAndSalt: [UInt8](repeating: 0xAB, count: 30)))
        var dumped = ""
        dump(master, to: &dumped)
        for text in ["\(master)", String(reflecting: master), dumped] {
            #expect(!text.contains("171") && !text.lowercased().contains("ab, ab"))
        }
        #expect(SRTPMasterKey(.aes128CM80, keyAndSalt: [UInt8](repeating: 1, count: 29)) == nil)
    }

    @Test func `keys are held until others take their place, and no longer`() throws {
        weak var first: SRTPKeys?
        weak var second: SRTPKeys?
        do {
            var receiver = SRTPReceiver()
            do {
                let (keys, others) = (try Packets.keys(seed: 1), try Packets.keys(seed: 2))
                (first, second) = (keys, others)
                let none = receiver.exchange(keys)
                #expect(none == nil)
                let former = receiver.exchange(others)
                #expect(former === keys)
                let same = try Packets.keys(seed: 2)
                let back = receiver.exchange(same)
                #expect(back === same)
            }
            #expect(first == nil && second != nil)
            var packet = Packets.media(1)
            var span = packet.mutableSpan
            let result = receiver.unprotect(&span, count: span.count)
            #expect(result != .failure(.noKey))
        }
        #expect(second == nil)
    }
}
