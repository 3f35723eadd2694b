import CallBasics
import Testing

@testable import SIPTransport

/// Datagrams of the kernel, byte by byte.
@Suite struct RouteMessageReaderTests {
    /// Numbers stand in the machine's byte order.
    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    /// A message: length 4 | type 2 | flags 2 | sequence 4 | port 4 | body, filled up to four bytes.
    private static func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        bytes(UInt32(16 + body.count)) + bytes(type) + [UInt8](repeating: 0, count: 10) + filled(body)
    }

    /// Length 2 | type 2 | value, filled up to four bytes.
    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        bytes(UInt16(4 + value.count)) + bytes(type) + filled(value)
    }

    private static func filled(_ value: [UInt8]) -> [UInt8] {
        value + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }

    /// Family 1 | 0 1 | type 2 | interface 4 | flags 4 | change 4 | attributes.
    private static func link(_ interface: UInt32, type: UInt16 = 16, flags: UInt32, name: String) -> [UInt8] {
        let head = [0, 0] + bytes(UInt16(1)) + bytes(interface) + bytes(flags) + bytes(UInt32.max)
        let attributes = attribute(13, bytes(UInt32(1000))) + attribute(3, Array(name.utf8) + [0])
        return message(type, head + attributes)
    }

    /// Family 1 | prefix 1 | flags 1 | scope 1 | interface 4 | attributes.
    private static func address(_ family: UInt8, flags: UInt8 = 0, _ attributes: [UInt8]) -> [UInt8] {
        message(20, [family, 24, flags, 0] + bytes(UInt32(3)) + attributes)
    }

    /// Family 1 | prefix 1 | prefix 1 | service 1 | table 1 | protocol 1 | scope 1 | type 1 | flags 4 | attributes.
    private static func route(prefix: UInt8 = 0, type: UInt8 = 1, _ attributes: [UInt8] = []) -> [UInt8] {
        message(24, [2, prefix, 0, 0, 254, 3, 0, type, 0, 0, 0, 0] + attributes)
    }

    private static func messages(_ datagram: [UInt8]) -> [RouteMessage] { RouteMessageReader.messages(in: datagram) }

    // MARK: From the kernel

    /// What Linux 6.18 sent in a namespace with a pair of interfaces (veth) while ip(8) changed it, as Python received it.
    static let recorded: [(bytes: String, message: RouteMessage)] = [
        (
            """
            4c000000140000002a46066b5a330000 0218800003000000 08000100c0000201 08000200c0000201 0700030061300000
            0800080080000000 14000600ffffffffffffffff004b0100004b0100
            """, .address(AddressNotice(SocketAddress(ipv4: 0xC000_0201, port: 0), on: 3, isAdded: true))
        ),
        (
            """
            4c000000150000003146066b6b330000 0218800003000000 08000100c0000201 08000200c0000201 0700030061300000
            0800080080000000 14000600ffffffffffffffff004b0100004b0100
            """, .address(AddressNotice(SocketAddress(ipv4: 0xC000_0201, port: 0), on: 3, isAdded: false))
        ),
        (
            """
            48000000140000000000000000000000 0a40c00003000000 1400010020010db8000000000000000000000001
            14000600ffffffffffffffff974b0100974b0100 08000800c0000000
            """, .address(AddressNotice(v6(0x2001_0DB8 << 32, 1), on: 3, isAdded: true, isTentative: true))
        ),
        (
            """
            48000000140000000000000000000000 0a40800003000000 1400010020010db8000000000000000000000001
            14000600ffffffffffffffff974b0100974b0100 0800080080000000
            """, .address(AddressNotice(v6(0x2001_0DB8 << 32, 1), on: 3, isAdded: true))
        ),
        (
            """
            50000000140000000000000000000000 0a4080fd03000000 14000100fe8000000000000028697cfffed87e5c
            14000600ffffffffffffffff324b0100324b0100 0800080080000000 05000b0003000000
            """, .address(AddressNotice(v6(0xFE80 << 48, 0x2869_7CFF_FED8_7E5C, scope: 3), on: 3, isAdded: true))
        ),
        (
            "34000000180000062b46066b5e330000 02000000fe03000100000000 08000f00fe000000 08000500c0000209 0800040003000000",
            .route(RouteNotice(isAdded: true, isDefault: true, interface: 3))
        ),
        (
            "34000000190000003046066b69330000 02000000fe03000100000000 08000f00fe000000 08000500c0000209 0800040003000000",
            .route(RouteNotice(isAdded: false, isDefault: true, interface: 3))
        ),
        (
            """
            3c000000180000060000000000000000 02180000fe02fd0110000000 08000f00fe000000 08000100c0000200 08000700c0000201
            0800040003000000
            """,
            .route(
                RouteNotice(
                    isAdded: true,
                    isDefault: false,
                    interface: 3,
                    source: SocketAddress(ipv4: 0xC000_0201, port: 0)
                )
            )
        ),
        (
            """
            3c000000200000002f46066b65330000 020000004d00000100000000 08000f004d000000 08000e00ffffffff 0500150000000000
            08000600fd7f0000
            """, .rule
        ),
    ]

    private static func v6(_ high: UInt64, _ low: UInt64, scope: UInt32 = 0) -> SocketAddress {
        SocketAddress(ipv6High: high, low: low, scope: scope, port: 0)
    }

    private static func bytes(ofHex text: String) throws -> [UInt8] {
        let digits = Array(text.filter { !$0.isWhitespace })
        return try stride(from: 0, to: digits.count, by: 2).map {
            try #require(UInt8(String(digits[$0..<($0 + 2)]), radix: 16))
        }
    }

    @Test(
        .enabled(if: UInt16(1).littleEndian == 1, "they were recorded with the lowest byte first"),
        arguments: recorded
    )
    func `what the kernel sent is read`(bytes: String, message: RouteMessage) throws {
        #expect(try Self.messages(Self.bytes(ofHex: bytes)) == [message])
    }

    // MARK: By hand

    /// Flags of linux/if.h: up is 0x1, running 0x40, with a cable 0x10000.
    @Test(arguments: [(0x1_1043, true, true), (0x1003, true, false), (0x1002, false, false)] as [(UInt32, Bool, Bool)])
    func `an interface tells whether it is up and runs`(flags: UInt32, isUp: Bool, isRunning: Bool) {
        let notice = LinkNotice(7, "eth0", isUp: isUp, isRunning: isRunning)
        #expect(Self.messages(Self.link(7, flags: flags, name: "eth0")) == [.link(notice)])
        let gone = LinkNotice(7, "eth0", isGone: true, isUp: isUp, isRunning: isRunning)
        #expect(Self.messages(Self.link(7, type: 17, flags: flags, name: "eth0")) == [.link(gone)])
    }

    @Test func `on a link between two the own address counts, not the other's`() {
        let attributes = Self.attribute(1, [10, 0, 0, 2]) + Self.attribute(2, [10, 0, 0, 1])
        let notice = AddressNotice(SocketAddress(ipv4: 0x0A00_0001, port: 0), on: 3, isAdded: true)
        #expect(Self.messages(Self.address(2, attributes)) == [.address(notice)])
    }

    /// Flags of linux/if_addr.h: temporary 0x01, optimistic 0x04, duplicate 0x08, tentative 0x40.
    @Test(
        arguments: [
            (0x01, false, false, true), (0x40, true, false, false), (0x44, false, false, false),
            (0x48, true, true, false), (0x141, true, false, true),
        ] as [(UInt32, Bool, Bool, Bool)]
    )
    func `an address tells whether it may be used`(
        flags: UInt32,
        isTentative: Bool,
        isDuplicate: Bool,
        isTemporary: Bool
    ) {
        let value = Self.attribute(1, [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1])
        let notice = AddressNotice(
            Self.v6(0x2001_0DB8 << 32, 1),
            on: 3,
            isAdded: true,
            isTentative: isTentative,
            isDuplicate: isDuplicate,
            isTemporary: isTemporary
        )
        let long = Self.address(10, value + Self.attribute(8, Self.bytes(flags)))
        #expect(Self.messages(long) == [.address(notice)])
        // Older kernels have the eight bits of the head alone.
        guard flags < 0x100 else { return }
        #expect(Self.messages(Self.address(10, flags: UInt8(flags), value)) == [.address(notice)])
    }

    /// Types of linux/rtnetlink.h: 1 to one host, 2 to this machine, 3 to all, 6 nowhere, 7 refused.
    @Test(arguments: [(1, true), (2, true), (3, false), (6, false), (7, false)] as [(UInt8, Bool)])
    func `a route tells whether packets go on`(type: UInt8, isUsable: Bool) {
        let notice = RouteNotice(isAdded: true, isDefault: false, isUsable: isUsable)
        #expect(Self.messages(Self.route(prefix: 8, type: type)) == [.route(notice)])
    }

    @Test func `refusals and losses are told, confirmations and others are not`() {
        let refusal = Self.message(2, Self.bytes(Int32(-101)) + [UInt8](repeating: 0, count: 16))
        let others = [UInt16(1), 3, 28, 68, 99].flatMap { Self.message($0, [1, 2, 3, 4]) }
        let confirmation = Self.message(2, Self.bytes(Int32(0)))
        #expect(Self.messages(refusal + others + confirmation + Self.message(4, [])) == [.refusal(101), .overrun])
        #expect(Self.messages(Self.message(2, Self.bytes(Int32.min))).isEmpty)
    }

    @Test func `a message that is too short, or has wrong addresses, is passed over`() {
        let short = Self.message(16, [0, 0, 0, 0]) + Self.message(20, [2]) + Self.message(24, [2, 0])
        let wrong = Self.address(2, Self.attribute(1, [1, 2, 3])) + Self.address(10, Self.attribute(1, [1, 2, 3, 4]))
        let other = Self.address(28, Self.attribute(1, [1, 2, 3, 4])) + Self.address(2, [])
        #expect(Self.messages(short + wrong + other + Self.message(32, [])) == [.rule])
    }

    @Test(arguments: [0, 3, 15, 17, 1000, 0x7FFF_FFFF, 0xFFFF_FFFF] as [UInt32])
    func `a length that cannot be ends the reading`(length: UInt32) {
        let wrong = Self.bytes(length) + [UInt8](repeating: 0, count: 12)
        #expect(Self.messages(Self.message(32, []) + wrong + Self.message(32, [])).count == 1)
    }

    @Test(arguments: [0, 3, 5, 200, 0xFFFF] as [UInt16])
    func `an attribute whose length cannot be hides those behind it`(length: UInt16) {
        let wrong = Self.bytes(length) + Self.bytes(UInt16(77))
        let notice = RouteNotice(isAdded: true, isDefault: true)
        let datagram = Self.route(wrong + Self.attribute(4, Self.bytes(UInt32(3))))
        #expect(Self.messages(datagram) == [.route(notice)])
    }

    // MARK: Any bytes

    private static let whole =
        link(7, flags: 0x1_1043, name: "eth0")
        + address(2, attribute(2, [192, 0, 2, 1]) + attribute(8, bytes(UInt32(0x80))))
        + route(attribute(4, bytes(UInt32(3))) + attribute(7, [192, 0, 2, 1])) + message(32, [])
        + message(2, bytes(Int32(-19)))

    @Test func `of every cut, the messages that are whole are read`() {
        let all = Self.messages(Self.whole)
        #expect(all.count == 5)
        var counts: Set<Int> = []
        for count in 0...Self.whole.count {
            let read = Self.messages(Array(Self.whole[..<count]))
            #expect(read == Array(all[..<read.count]))
            counts.insert(read.count)
        }
        #expect(counts == [0, 1, 2, 3, 4, 5])
    }

    @Test func `any bytes are read without harm`() {
        var generator = SeededGenerator(seed: 12)
        for round in 0..<20_000 {
            var bytes = Self.whole
            for _ in 0...(generator.next() % 4) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            if round % 4 == 0 {
                bytes = bytes.map { _ in UInt8(truncatingIfNeeded: generator.next() & generator.next()) }
            }
            #expect(Self.messages(bytes).count <= bytes.count / 16)
        }
    }

    // MARK: Questions

    @Test func `questions have the form of the answers`() {
        let way = RouteQuestion.way(to: SocketAddress(ipv4: 0xC000_0209, port: 5060))
        let head = Self.bytes(UInt32(36)) + Self.bytes(UInt16(26)) + Self.bytes(UInt16(1)) + [0, 0, 0, 0, 0, 0, 0, 0]
        #expect(way == head + [2, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] + Self.attribute(1, [192, 0, 2, 9]))
        let linkLocal = RouteQuestion.way(to: Self.v6(0xFE80 << 48, 9, scope: 3))
        let address = [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [9]
        let attributes = Self.attribute(1, address) + Self.attribute(4, Self.bytes(UInt32(3)))
        #expect(Array(linkLocal[16...]) == [10, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] + attributes)
        let link = RouteQuestion.link(3)
        #expect(link.count == 32 && Array(link[4..<8]) == Self.bytes(UInt16(18)) + Self.bytes(UInt16(1)))
        #expect(Array(link[20..<24]) == Self.bytes(UInt32(3)))
    }
}
