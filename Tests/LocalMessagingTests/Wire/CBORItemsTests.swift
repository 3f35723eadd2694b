import Foundation
import NIOCore
import Testing

@testable import LocalMessaging

/// Bytes from a process that means no good.
struct CBORItemsTests {
    private static func check(_ bytes: ByteBuffer, depth: Int = 3, count: Int = 10) throws(CBORFault) {
        var configuration = MessagingConfiguration()
        (configuration.maximumDepth, configuration.maximumValueCount) = (depth, count)
        _ = try CBORMessage(bytes, within: MessageBounds(configuration))
    }

    private static func fault(_ text: String, depth: Int = 3, count: Int = 10) -> String? {
        do throws(CBORFault) {
            try check(ByteBuffer(cbor: text), depth: depth, count: count)
            return nil
        } catch {
            return error.description
        }
    }

    @Test(arguments: ["81 81 80", "a1 61 61 a1 61 62 80", "83 80 80 81 80", "00"])
    func `nesting within the bound passes`(text: String) {
        #expect(Self.fault(text) == nil)
    }

    @Test(arguments: ["81 81 81 80", "81 81 81 81", "a1 61 61 81 a1 61 62 80"])
    func `nesting beyond the bound is refused, complete or not`(text: String) {
        #expect(Self.fault(text) == "more than 3 levels of nesting.")
    }

    @Test func `values are counted, keys are not`() {
        #expect(Self.fault("88 01 02 03 04 05 06 07 08", count: 9) == nil)
        #expect(Self.fault("89 01 02 03 04 05 06 07 08 09", count: 9) == "more than 9 values.")
        #expect(Self.fault("83 80 80 80", count: 4) == nil)
        #expect(Self.fault("83 80 80 81 00", count: 4) == "more than 4 values.")
        #expect(Self.fault("a2 61 61 01 61 62 02", count: 3) == nil)
        #expect(Self.fault("a2 61 61 01 61 62 02", count: 2) == "more than 2 values.")
    }

    @Test(arguments: ["9bffffffffffffffff", "bbffffffffffffffff", "9affffffff", "99ffff", "bb7fffffffffffffff"])
    func `a count beyond the bound is refused whatever follows`(text: String) {
        #expect(Self.fault(text) == "more than 10 values.")
        #expect(Self.fault(text, count: .max) != nil)
    }

    @Test(arguments: [
        "5bffffffffffffffff", "7bffffffffffffffff", "7a7fffffff 61", "42 01", "62 61", "82 01", "a1 61 61", "a1 60",
        "81",
    ])
    func `lengths beyond the end are refused before memory is taken`(text: String) {
        #expect(Self.fault(text) != nil)
    }

    @Test(arguments: ["", "18", "19 00", "1a 00 00 00", "1b 00 00 00 00 00 00 00", "f9 00", "81 19 00"])
    func `a cut head is refused`(text: String) {
        #expect(Self.fault(text) != nil)
    }

    @Test func `bytes after the value are refused`() {
        #expect(Self.fault("01 02") == "byte 1: bytes after the value.")
        #expect(Self.fault("80 f6") == "byte 1: bytes after the value.")
    }

    @Test(arguments: [
        "61 ff", "62 c0 80", "63 ed a0 80", "64 f4 90 80 80", "69 61 61 61 61 61 61 61 61 80",
        "a1 61 80 00",
    ])
    func `a text that is not UTF-8 is refused, as a key too`(text: String) {
        #expect(Self.fault(text)?.contains("UTF-8") ?? false)
    }

    @Test(arguments: ["a2 61 61 01 61 61 02", "a2 61 61 01 78 01 61 02", "81 a2 60 01 60 02"])
    func `a key that comes twice is refused`(text: String) {
        #expect(Self.fault(text)?.contains("a second time") ?? false)
    }

    @Test func `a key that comes twice among many is refused, wherever`() throws {
        let names = (0..<100).map { String(format: "%03d", $0) }
        for (first, second) in [(0, 99), (0, 1), (50, 51), (98, 99)] {
            var bytes = ByteBuffer(cbor: "b8 64")
            for (index, name) in names.enumerated() {
                bytes.writeBytes([0x63] + Array((index == second ? names[first] : name).utf8) + [0])
            }
            #expect(throws: CBORFault.self) { try Self.check(bytes, count: 1000) }
        }
    }

    @Test func `longer heads than needed are taken`() throws {
        for text in ["1b0000000000000001", "1a00000001", "190001", "1801"] {
            let value = try MessageCoding.decode(
                Int.self,
                from: ByteBuffer(cbor: text),
                within: MessageBounds(MessagingConfiguration())
            )
            #expect(value == 1)
        }
    }

    // MARK: Any bytes

    @Test func `each truncation is an error`() throws {
        for bytes in try Everything.payloads {
            for count in 0..<bytes.readableBytes {
                let cut = try #require(bytes.getSlice(at: 0, length: count))
                #expect(throws: CBORFault.self) { try Self.check(cut, depth: 16, count: 1000) }
            }
        }
    }

    @Test func `each byte changed is an error or another message`() throws {
        for bytes in try Everything.payloads {
            for offset in 0..<bytes.readableBytes {
                let byte = try #require(bytes.getInteger(at: offset, as: UInt8.self))
                // Another major type, another length.
                for change in [[0x20, 0x40, 0x80, 0xE0][offset % 4], [1, 2, 0x18, 0x1F][offset / 4 % 4]] as [UInt8] {
                    var changed = bytes
                    changed.setInteger(byte ^ change, at: offset)
                    Everything.decode(changed)
                }
            }
        }
    }

    @Test func `random bytes are an error or a message`() {
        var generator = SplitMix64(seed: 8)
        for _ in 0..<3000 {
            let count = Int.random(in: 0...40, using: &generator)
            // Few majors and small numbers, so that some of it is well-formed.
            let bytes = (0..<count).map { _ in
                let byte = UInt8.random(in: 0...255, using: &generator)
                return Bool.random(using: &generator) ? byte : byte & 0xE3
            }
            Everything.decode(ByteBuffer(bytes: bytes))
        }
    }
}

/// A key of any name.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}
