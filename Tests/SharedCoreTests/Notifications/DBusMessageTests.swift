import NIOCore
import NIOEmbedded
import Testing

@testable import SharedCore

/// Messages of D-Bus, their bytes, and how a stream is cut into them.
@Suite struct DBusMessageTests {
    /// The call of `Notify` by `gdbus call` (GLib 2.74) as `dbus-monitor --binary` (dbus 1.14.10) wrote it.
    ///
    /// Nobody told gdbus that the second argument has no sign.
    static let notifyBytes = bytes(
        """
        6c0100018400000003000000ad00000001016f001e0000002f6f72672f667265656465736b746f702f4e6f74696669636174696f6e730000
        020173001d0000006f72672e667265656465736b746f702e4e6f74696669636174696f6e73000000060173001d0000006f72672e66726565
        6465736b746f702e4e6f74696669636174696f6e73000000080167000d73697373736173617b73767d690000000000000301730006000000
        4e6f74696679000007017300040000003a312e32000000000300000061707000070000000000000000000000030000004164610003000000
        613c62001d0000000c0000006d61726b2d61732d7365656e00000000040000005365656e0000000030000000000000000800000063617465
        676f7279000173000b000000696d2e72656365697665640007000000757267656e63790001790001ffffffff
        """
    )

    static let notifyBody: [DBusValue] = [
        .string("app"), .int32(7), .string(""), .string("Ada"), .string("a<b"), .strings(["mark-as-seen", "Seen"]),
        .dictionary([("category", .string("im.received")), ("urgency", .byte(1))]), .int32(-1),
    ]

    @Test func `a call that another program made is read`() throws {
        let message = try #require(try DBusMessage(parsing: Self.notifyBytes))
        #expect(message.kind == .call && message.serial == 3 && message.expectsReply)
        #expect(message.path == "/org/freedesktop/Notifications" && message.member == "Notify")
        #expect(message.interface == message.destination && message.sender == ":1.2")
        #expect(message.body == Self.notifyBody)
    }

    @Test func `a body has the bytes that another program gives it`() {
        var writer = DBusWriter()
        for value in Self.notifyBody { writer.write(value) }
        #expect(writer.bytes == Array(Self.notifyBytes.suffix(132)))
    }

    @Test func `every kind of value is read as it was written`() throws {
        var message = DBusMessage(.signal)
        message.serial = 9
        message.path = "/a"
        message.interface = "a.b"
        message.member = "M"
        message.body = [
            .byte(1), .boolean(true), .int16(-2), .uint16(3), .int32(-4), .uint32(5), .int64(-6), .uint64(7),
            .double(0.5), .string("grüezi"), .objectPath("/x"), .signature("a{sv}"), .descriptor(0),
            .structure([.byte(1), .uint64(2)]), .array(of: .basic("t"), []), .variant(.variant(.byte(1))),
            .array(of: .structure([.basic("y")]), [.structure([.byte(1)]), .structure([.byte(2)])]),
        ]
        #expect(try DBusMessage(parsing: message.serialize()) == message)
    }

    @Test func `every truncation is an error, and no changed byte traps`() {
        for count in 0..<Self.notifyBytes.count {
            #expect(throws: NotificationError.self, "cut at \(count)") {
                try DBusMessage(parsing: Array(Self.notifyBytes.prefix(count)))
            }
        }
        var readCount = 0
        for index in Self.notifyBytes.indices {
            for value in [0, 1, 0x28, 0x61, 0x7b, 0x7f, 0xff] as [UInt8] {
                var bytes = Self.notifyBytes
                bytes[index] = value
                if (try? DBusMessage(parsing: bytes)) != nil { readCount += 1 }
            }
        }
        // Letters of a text may change, and lengths may not.
        #expect((100..<Self.notifyBytes.count * 7).contains(readCount))
    }

    @Test func `a message longer than is taken is refused by its header`() {
        var header = Array(Self.notifyBytes.prefix(16))
        for length in [DBusMessage.mostBytes as Int, Int(UInt32.max)] {
            for index in 0..<4 { header[4 + index] = UInt8(truncatingIfNeeded: length >> (8 * index)) }
            #expect(throws: NotificationError.self) { try DBusMessage.byteCount(ofHeader: header) }
        }
    }

    @Test(arguments: ["(", "()", "a", "{sv}", "a{vs}", "a{s}", "z", "a(", String(repeating: "a", count: 65) + "y"])
    func `what is no signature is an error`(signature: String) {
        #expect(throws: NotificationError.self) { try DBusType.parse(signature: signature) }
    }

    @Test func `variants nest 64 deep at most`() {
        let bytes = (0..<200).flatMap { _ in [1, UInt8(ascii: "v"), 0] }
        var reader = DBusReader(bytes, isBigEndian: false)
        #expect(throws: NotificationError.self) { try reader.read(.variant) }
    }

    @Test func `any split of the stream gives the same line and messages`() throws {
        let stream = Array("OK 0123456789abcdef\r\n".utf8) + Self.notifyBytes + Self.notifyBytes
        let message = try #require(try DBusMessage(parsing: Self.notifyBytes))
        for size in [1, 2, 3, 7, 16, 21, 100, 324, stream.count] {
            let channel = EmbeddedChannel(handler: ByteToMessageHandler(DBusDecoder()))
            var rest = ByteBuffer(bytes: stream)
            while rest.readableBytes > 0, let part = rest.readSlice(length: min(size, rest.readableBytes)) {
                try channel.writeInbound(part)
            }
            #expect(try channel.readInbound(as: DBusInbound.self) == .line("OK 0123456789abcdef\r\n"), "by \(size)")
            for _ in 0..<2 {
                #expect(try channel.readInbound(as: DBusInbound.self) == .message(message), "by \(size)")
            }
            #expect(try channel.readInbound(as: DBusInbound.self) == nil, "by \(size)")
            _ = try channel.finish()
        }
    }

    @Test func `a line without end is refused`() throws {
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(DBusDecoder()))
        #expect(throws: NotificationError.self) { try channel.writeInbound(ByteBuffer(repeating: 0x41, count: 4097)) }
    }

    @Test(
        arguments: [
            ("unix:path=/run/user/1/bus,guid=12", [DBusAddress.path("/run/user/1/bus")]),
            ("tcp:host=h,port=1;unix:abstract=/tmp/a%20b", [.abstract("/tmp/a b")]),
            ("unix:guid=1;unix:path=%zz;unix:path", []),
        ]
    )
    func `sockets are found in addresses`(text: String, addresses: [DBusAddress]) {
        #expect(DBusAddress.parse(text) == addresses)
    }

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.filter(\.isHexDigit))
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }
}
