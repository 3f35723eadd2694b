import CallBasics
import SIP
import Testing

@testable import SIPTransport

/// Answers of name servers, byte by byte.
@Suite struct DNSMessageTests {
    /// A message is made of its head, a question for the name of the packet, and sections.
    private static func message(
        flags: UInt16 = 0x8180,
        answers: [[UInt8]] = [],
        authorities: [[UInt8]] = [],
        question: [UInt8] = name("a", "example")
    ) -> [UInt8] {
        let counts = [1, UInt16(answers.count), UInt16(authorities.count), 0].flatMap(bytes)
        return [0xAB, 0xCD] + bytes(flags) + counts + question + [0, 1, 0, 1] + (answers + authorities).flatMap { $0 }
    }

    private static func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    private static func name(_ labels: String...) -> [UInt8] {
        labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// The name of the question.
    private static let pointer: [UInt8] = [0xC0, 12]

    private static func record(_ type: UInt8, _ data: [UInt8], owner: [UInt8] = pointer, seconds: UInt32 = 300)
        -> [UInt8]
    {
        let life = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: seconds >> $0) }
        return owner + [0, type, 0, 1] + life + bytes(UInt16(data.count)) + data
    }

    private static func host(_ text: String) throws -> DNSName { try #require(DNSName(text)) }

    @Test func `addresses, aliases, services and pointers are read with their lives`() throws {
        let records = [
            Self.record(1, [192, 0, 2, 7]),
            Self.record(28, [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]),
            Self.record(5, Self.name("B", "Example"), seconds: 9),
            Self.record(33, [0, 10, 0, 60, 0x13, 0xC4, 1, 0x78] + Self.pointer),
            Self.record(35, [0, 1, 0, 2, 1, 0x73, 7] + Array("SIP+D2T".utf8) + [0] + Self.name("_sip", "_tcp", "x")),
        ]
        let a = try Self.host("a.example")
        let service = ServiceRecord(priority: 10, weight: 60, port: 5060, target: try Self.host("x.a.example"))
        let pointer = PointerRecord(
            order: 1,
            preference: 2,
            flags: "s",
            service: "SIP+D2T",
            replacement: try Self.host("_sip._tcp.x")
        )
        let v6 = try #require(SocketAddress(host: "2001:db8::7", port: 0))
        let expected: [DNSRecord] = [
            DNSRecord(a, seconds: 300, .address(SocketAddress(ipv4: 0xC000_0207, port: 0))),
            DNSRecord(a, seconds: 300, .address(v6)), DNSRecord(a, seconds: 9, .alias(try Self.host("b.example"))),
            DNSRecord(a, seconds: 300, .service(service)), DNSRecord(a, seconds: 300, .pointer(pointer)),
        ]
        #expect(DNSMessage.answer(in: Self.message(answers: records)) == .records(expected))
    }

    @Test func `records of other kinds, classes and forms are passed over`() throws {
        var chaos = Self.record(1, [1, 2, 3, 4])
        chaos[5] = 3
        let useless = [chaos, Self.record(16, [1, 65]), Self.record(1, [1, 2, 3]), Self.record(33, [0, 1])]
        let good = Self.record(1, [192, 0, 2, 1], seconds: 0x8000_0000)
        let answer = DNSMessage.answer(in: Self.message(answers: useless + [good]))
        let record = DNSRecord(
            try Self.host("a.example"),
            seconds: 0,
            .address(SocketAddress(ipv4: 0xC000_0201, port: 0))
        )
        #expect(answer == .records([record]))
        #expect(DNSMessage.answer(in: Self.message(answers: useless)) == .noData(nil))
    }

    @Test func `that there is nothing holds as long as the zone says`() {
        let numbers = [UInt8](repeating: 0, count: 16) + [0, 0, 0, 90]
        let zone = Self.record(6, Self.name("ns") + Self.name("who") + numbers)
        #expect(DNSMessage.answer(in: Self.message(flags: 0x8183, authorities: [zone])) == .noSuchName(.seconds(90)))
        #expect(DNSMessage.answer(in: Self.message(authorities: [zone])) == .noData(.seconds(90)))
        let short = Self.record(6, Self.name("ns") + Self.name("who") + numbers, seconds: 5)
        #expect(DNSMessage.answer(in: Self.message(authorities: [short])) == .noData(.seconds(5)))
        #expect(DNSMessage.answer(in: Self.message(flags: 0x8183)) == .noSuchName(nil))
    }

    @Test(arguments: [0x8182, 0x8185, 0x0180, 0x8380] as [UInt16])
    func `a refusal, a question and a message that was cut are no answer`(flags: UInt16) {
        #expect(DNSMessage.answer(in: Self.message(flags: flags, answers: [Self.record(1, [1, 2, 3, 4])])) == .failure)
    }

    @Test func `pointers in circles, to themselves and ahead lead nowhere`() {
        for target in [UInt8(39), 40, 41, 200] {
            let alias = Self.record(5, [0xC0, target])
            let answer = DNSMessage.answer(in: Self.message(answers: [alias]))
            #expect(answer == .noData(nil) || answer == .failure, "\(target)")
        }
    }

    @Test func `every cut, and bytes at random, are answers of some kind`() {
        let whole = Self.message(
            answers: [
                Self.record(33, [0, 10, 0, 60, 0x13, 0xC4, 1, 0x78] + Self.pointer), Self.record(1, [1, 2, 3, 4]),
            ]
        )
        for count in 0..<whole.count { #expect(DNSMessage.answer(in: Array(whole[..<count])) == .failure) }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0...(generator.next() % 4) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            if case .records(let records) = DNSMessage.answer(in: bytes) { #expect(records.count <= 256) }
        }
    }
}
