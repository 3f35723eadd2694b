import Foundation
import NIOCore
import Testing

@testable import LocalMessaging

/// The examples of RFC 8949, appendix A.
struct CBORVectorTests {
    private static let bounds = MessageBounds(MessagingConfiguration())

    private static func decode<Value: Decodable>(_: Value.Type, _ text: String) throws -> Value {
        try MessageCoding.decode(Value.self, from: ByteBuffer(cbor: text), within: bounds)
    }

    @Test(arguments: [
        (0, "00"), (1, "01"), (10, "0a"), (23, "17"), (24, "1818"), (25, "1819"), (100, "1864"), (1000, "1903e8"),
        (1_000_000, "1a000f4240"), (1_000_000_000_000, "1b000000e8d4a51000"), (-1, "20"), (-10, "29"), (-100, "3863"),
        (-1000, "3903e7"),
    ])
    func `integers`(value: Int, text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try Self.decode(Int.self, text) == value)
        #expect(try Self.decode(Double.self, text) == Double(value))
    }

    @Test func `the largest and the least integer`() throws {
        #expect(try MessageCoding.encode(UInt64.max).hex == "1bffffffffffffffff")
        #expect(try Self.decode(UInt64.self, "1bffffffffffffffff") == .max)
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(Int64.self, "1bffffffffffffffff") }
        // -18446744073709551616 fits no integer of Swift's but a number with a fraction.
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(Int64.self, "3bffffffffffffffff") }
        #expect(try Self.decode(Double.self, "3bffffffffffffffff") == -18_446_744_073_709_551_616)
    }

    @Test(arguments: [
        (1.1, "fb3ff199999999999a"), (1.0e+300, "fb7e37e43c8800759c"), (-4.1, "fbc010666666666666"),
        (.infinity, "fb7ff0000000000000"), (-.infinity, "fbfff0000000000000"), (0, "fb0000000000000000"),
    ])
    func `numbers of 64 bits`(value: Double, text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try Self.decode(Double.self, text) == value)
    }

    @Test(
        arguments: [
            (100_000, "fa47c35000"), (3.402_823_466_385_288_6e+38, "fa7f7fffff"), (.infinity, "fa7f800000"),
            (-.infinity, "faff800000"),
        ] as [(Float, String)]
    )
    func `numbers of 32 bits`(value: Float, text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try Self.decode(Float.self, text) == value)
        #expect(try Self.decode(Double.self, text) == Double(value))
    }

    @Test(
        arguments: [
            ("f90000", 0), ("f93c00", 1), ("f93e00", 1.5), ("f97bff", 65504), ("f90001", 5.960_464_477_539_063e-8),
            ("f90400", 0.000_061_035_156_25), ("f9c400", -4), ("f97c00", .infinity), ("f9fc00", -.infinity),
        ] as [(String, Double)]
    )
    func `numbers of 16 bits are read`(text: String, value: Double) throws {
        #expect(try Self.decode(Double.self, text) == value)
        #expect(try Self.decode(Float.self, text) == Float(value))
    }

    @Test(arguments: ["f97e00", "fa7fc00000", "fb7ff8000000000000"])
    func `no number is one of each size`(text: String) throws {
        #expect(try Self.decode(Double.self, text).isNaN)
        #expect(try Self.decode(Float.self, text).isNaN)
    }

    @Test func `minus zero keeps its sign`() throws {
        #expect(try Self.decode(Double.self, "f98000").sign == .minus)
        #expect(try MessageCoding.encode(-0.0).hex == "fb8000000000000000")
    }

    @Test func `truth values and null`() throws {
        #expect(try MessageCoding.encode(false).hex == "f4")
        #expect(try MessageCoding.encode(true).hex == "f5")
        #expect(try MessageCoding.encode(Int?.none).hex == "f6")
        #expect(try Self.decode(Bool.self, "f4") == false)
        #expect(try Self.decode(Bool.self, "f5"))
        #expect(try Self.decode(Int?.self, "f6") == nil)
    }

    @Test(arguments: [
        ("", "60"), ("a", "6161"), ("IETF", "6449455446"), ("\"\\", "62225c"), ("\u{00fc}", "62c3bc"),
        ("\u{6c34}", "63e6b0b4"), ("\u{10151}", "64f0908591"),
    ])
    func `texts`(value: String, text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try Self.decode(String.self, text) == value)
    }

    @Test(arguments: [([], "40"), ([1, 2, 3, 4], "4401020304")] as [([UInt8], String)])
    func `bytes`(value: [UInt8], text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try MessageCoding.encode(Data(value)).hex == text)
        #expect(try Self.decode([UInt8].self, text) == value)
        #expect(try Self.decode(Data.self, text) == Data(value))
    }

    @Test(
        arguments: [
            ([], "80"), ([1, 2, 3], "83010203"),
            (Array(1...25), "981901020304050607" + "08090a0b0c0d0e0f" + "101112131415161718181819"),
        ] as [([Int], String)]
    )
    func `arrays`(value: [Int], text: String) throws {
        #expect(try MessageCoding.encode(value).hex == text)
        #expect(try Self.decode([Int].self, text) == value)
    }

    @Test func `maps, and what is in them`() throws {
        #expect(try MessageCoding.encode([String: Int]()).hex == "a0")
        #expect(try Self.decode([String: Int].self, "a0").isEmpty)
        let letters = ["a": "A", "b": "B", "c": "C", "d": "D", "e": "E"]
        #expect(try Self.decode([String: String].self, "a56161614161626142616361436164614461656145") == letters)
        struct Mixed: Codable, Equatable {
            let a: Int
            let b: [Int]
        }
        #expect(try MessageCoding.encode(Mixed(a: 1, b: [2, 3])).hex == "a26161016162820203")
        #expect(try Self.decode(Mixed.self, "a26161016162820203") == Mixed(a: 1, b: [2, 3]))
    }

    @Test(arguments: [
        ("f7", "a simple value other than"), ("f0", "a simple value other than"), ("f818", "a simple value other than"),
        ("f8ff", "a simple value other than"), ("c074323031332d30332d32315432303a30343a30305a", "a tag"),
        ("c249010000000000000000", "a tag"), ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", "a tag"),
        ("a201020304", "a key that is an integer"), ("5f42010243030405ff", "indefinite"),
        ("7f657374726561646d696e67ff", "indefinite"), ("9fff", "indefinite"), ("83018202039f0405ff", "indefinite"),
        ("bf61610161629f0203ffff", "indefinite"), ("ff", "indefinite"), ("1c", "no meaning"), ("fe", "no meaning"),
    ])
    func `what messages do not have is refused by its name`(text: String, what: String) throws {
        let error = #expect(throws: MessageCoding.Failure.self) { try Self.decode(Int.self, text) }
        #expect(error?.description.contains(what) ?? false, "\(error?.description ?? "")")
    }
}
