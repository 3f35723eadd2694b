import Foundation
import NIOCore
import Testing

@testable import LocalMessaging

/// `CBOREncoder` and `CBORDecoder` by what `Codable` asks of them.
struct CBORCoderTests {
    private static let bounds = MessageBounds(MessagingConfiguration())

    private static func decode<Value: Decodable>(_: Value.Type, _ bytes: ByteBuffer) throws -> Value {
        try MessageCoding.decode(Value.self, from: bytes, within: bounds)
    }

    private static func again<Value: Codable>(_ value: Value) throws -> Value {
        try decode(Value.self, MessageCoding.encode(value))
    }

    // MARK: Round trips

    @Test func `each shape decodes to itself`() throws {
        #expect(try Self.again(Everything()) == Everything())
        let derived = Derived()
        (derived.name, derived.number) = ("other", -1)
        let copy = try Self.again(derived)
        #expect(copy.name == "other" && copy.number == -1)
    }

    @Test func `values at the top decode to themselves`() throws {
        #expect(try Self.again("text") == "text")
        #expect(try Self.again(UInt64.max) == .max)
        #expect(try Self.again(Int64.min) == .min)
        #expect(try Self.again([Int?.none, 1]) == [nil, 1])
        #expect(try Self.again(Int?.none) == nil)
        #expect(try Self.again(Double.nan).isNaN)
        #expect(try Self.again(Everything.Color.red) == .red)
        #expect(try Self.again([[UInt8]]([[1], []])) == [[1], []])
        #expect(try Self.again(Data([7])) == Data([7]))
    }

    @Test(arguments: [0, 1, 22, 23, 24, 25, 255, 256, 257, 65_534])
    func `arrays and maps of each size of head decode to themselves`(count: Int) throws {
        let array = (0..<count).map { $0 % 7 }
        #expect(try Self.again(array) == array)
        let map = Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0)", $0) })
        #expect(try Self.again(map) == map)
        if count < 300 {
            let nested = [array, [], array]
            #expect(try Self.again(nested) == nested)
        }
    }

    // MARK: Containers that are used in any order

    private struct Interleaved: Codable, Equatable {
        enum Key: CodingKey {
            case first, list, inner, last
        }

        var values: [Int] = []

        init(values: [Int]) { self.values = values }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            values.append(try container.decode(Int.self, forKey: .last))
            var list = try container.nestedUnkeyedContainer(forKey: .list)
            #expect(list.count == 3 && list.currentIndex == 0)
            values.append(try list.decode(Int.self))
            let inner = try container.nestedContainer(keyedBy: Key.self, forKey: .inner)
            values.append(try inner.decode(Int.self, forKey: .first))
            #expect(throws: DecodingError.self) { try list.decode(Int.self) }
            var listed = try list.nestedUnkeyedContainer()
            #expect(try listed.decode(Int.self) == values[2] && listed.isAtEnd)
            #expect(try list.decodeNil())
            #expect(list.isAtEnd && list.currentIndex == 3)
            #expect(throws: DecodingError.self) { try list.decodeNil() }
            let last = try inner.superDecoder(forKey: .last)
            values.append(try Int(from: last))
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            var inner = container.nestedContainer(keyedBy: Key.self, forKey: .inner)
            try list.encode(values[1])
            try inner.encode(values[2], forKey: .first)
            try container.encode(values[0], forKey: .last)
            var listed = list.nestedUnkeyedContainer()
            try list.encodeNil()
            try listed.encode(values[2])
            #expect(list.count == 3 && listed.count == 1)
            let last = inner.superEncoder(forKey: .last)
            try values[3].encode(to: last)
            #expect(throws: EncodingError.self) { try container.encode(Unwilling(), forKey: .first) }
        }
    }

    private struct Unwilling: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: AnyKey.self)
            try container.encode([1, 2, 3], forKey: AnyKey("half"))
            throw EncodingError.invalidValue(1, .init(codingPath: encoder.codingPath, debugDescription: "no more"))
        }
    }

    @Test func `nested containers are filled in any order, and a value that throws leaves nothing`() throws {
        let value = Interleaved(values: [300, 2, -3, 70_000])
        #expect(try Self.again(value) == value)
        #expect(try Self.again([value, value]) == [value, value])
        #expect(
            try MessageCoding.encode(value).hex
                == "a3" + "646c697374" + "830281" + "22f6" + "65696e6e6572" + "a2" + "656669727374" + "22"
                + "646c617374"
                + "1a00011170" + "646c617374" + "19012c"
        )
    }

    @Test func `many nested containers`() throws {
        struct Rows: Encodable {
            func encode(to encoder: any Encoder) throws {
                var rows = encoder.unkeyedContainer()
                for index in 0..<1000 {
                    var row = rows.nestedUnkeyedContainer()
                    try row.encode(index)
                    try rows.encode([index])
                }
            }
        }
        let rows = try Self.decode([[Int]].self, MessageCoding.encode(Rows()))
        #expect(rows == (0..<1000).flatMap { [[$0], [$0]] })
    }

    // MARK: Wrong use

    private struct Custom: Encodable {
        let body: (any Encoder) throws -> Void

        func encode(to encoder: any Encoder) throws { try body(encoder) }
    }

    @Test func `containers of two kinds, or two values, are an error`() {
        let wrong: [Custom] = [
            Custom { encoder in
                var list = encoder.unkeyedContainer()
                try list.encode(1)
                _ = encoder.container(keyedBy: AnyKey.self)
            },
            Custom { encoder in
                var value = encoder.singleValueContainer()
                try value.encode(1)
                try value.encode(2)
            },
            Custom { encoder in
                var value = encoder.singleValueContainer()
                try value.encode([1])
                try value.encode([2])
            },
            Custom { encoder in
                var value = encoder.singleValueContainer()
                try value.encode(1)
                _ = encoder.unkeyedContainer()
            },
        ]
        for value in wrong {
            #expect(throws: MessageCoding.Failure.self) { try MessageCoding.encode(value) }
            #expect(throws: MessageCoding.Failure.self) { try MessageCoding.encode(["key": value]) }
        }
    }

    @Test func `a container that outlives its value writes nothing more`() throws {
        let late = Custom { encoder in
            var kept: (any UnkeyedEncodingContainer)?
            var list = encoder.unkeyedContainer()
            try list.encode(Custom { kept = $0.unkeyedContainer() })
            #expect(throws: EncodingError.self) { try kept?.encode(1) }
            #expect(throws: EncodingError.self) { try kept?.encode([1]) }
            let outer = list
            try list.encode(
                Custom { _ in
                    var outer = outer
                    #expect(throws: EncodingError.self) { try outer.encode(1) }
                }
            )
        }
        #expect(try MessageCoding.encode(late).hex == "8280a0")
    }

    @Test func `a value that contains itself is an error of its sender`() {
        struct Endless: Encodable {
            func encode(to encoder: any Encoder) throws {
                var list = encoder.unkeyedContainer()
                try list.encode(Endless())
            }
        }
        struct Alone: Encodable {
            func encode(to encoder: any Encoder) throws {
                var value = encoder.singleValueContainer()
                try value.encode(Alone())
            }
        }
        struct Later: Encodable {
            func encode(to encoder: any Encoder) throws {
                var encoder = encoder
                for _ in 0..<100_000 {
                    var list = encoder.unkeyedContainer()
                    encoder = list.superEncoder()
                }
            }
        }
        for value: any Encodable in [Endless(), Alone(), Later()] {
            let error = #expect(throws: MessageCoding.Failure.self) { try MessageCoding.encode(value) }
            #expect(error?.description.contains("more than 256 values within each other") ?? false)
        }
    }

    @Test func `encoders for later are gone with the message, also where it fails`() throws {
        final class Seen {
            weak var inner: AnyObject?
            weak var outer: AnyObject?
        }
        struct Element: Encodable {
            let seen: Seen
            let fails: Bool

            func encode(to encoder: any Encoder) throws {
                seen.outer = encoder as AnyObject
                var list = encoder.unkeyedContainer()
                let inner = list.superEncoder()
                seen.inner = inner as AnyObject
                var value = inner.singleValueContainer()
                try value.encode(1)
                if fails { _ = inner.unkeyedContainer() }
            }
        }
        for fails in [false, true] {
            let (first, second) = (Seen(), Seen())
            let alone = (try? MessageCoding.encode(Element(seen: first, fails: fails))) != nil
            let listed = (try? MessageCoding.encode([Element(seen: second, fails: fails)])) != nil
            #expect(alone == !fails && listed == !fails)
            for seen in [first, second] { #expect(seen.inner == nil && seen.outer == nil) }
        }
    }

    // MARK: Senders of another age

    private struct Older: Codable, Equatable {
        let text: String
    }

    private struct Newer: Codable, Equatable {
        let before: [String: [Int]]
        let text: String
        let after: Older?
    }

    @Test func `what a newer sender says beyond is skipped`() throws {
        let newer = Newer(before: ["a": [1, 2], "b": []], text: "t", after: Older(text: "u"))
        #expect(try Self.decode(Older.self, MessageCoding.encode(newer)) == Older(text: "t"))
    }

    @Test func `what an older sender does not say is nil where it may be`() throws {
        struct Later: Decodable {
            let text: String
            let after: Older?
            let number: Int?
        }
        let later = try Self.decode(Later.self, MessageCoding.encode(Older(text: "t")))
        #expect(later.text == "t" && later.after == nil && later.number == nil)
        let error = #expect(throws: MessageCoding.Failure.self) {
            try Self.decode(Newer.self, MessageCoding.encode(Older(text: "t")))
        }
        #expect(error?.description == "there is no before.")
    }

    // MARK: Conversions

    @Test func `numbers convert where nothing is lost but digits`() throws {
        #expect(try Self.decode(Double.self, MessageCoding.encode(1 << 53 + 1)) == 9_007_199_254_740_992)
        #expect(try Self.decode(Float.self, MessageCoding.encode(0.1)) == 0.1)
        #expect(try Self.decode(Float.self, MessageCoding.encode(7)) == 7)
        #expect(try Self.decode(Float.self, MessageCoding.encode(Double.infinity)) == .infinity)
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(Float.self, MessageCoding.encode(1e39)) }
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(Int.self, MessageCoding.encode(1.0)) }
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(UInt.self, MessageCoding.encode(-1)) }
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(Bool.self, MessageCoding.encode(1)) }
        #expect(throws: MessageCoding.Failure.self) { try Self.decode(String.self, MessageCoding.encode(Data([1]))) }
    }

    @Test func `an array of small numbers is taken for bytes, bytes for no array of numbers`() throws {
        #expect(try Self.decode([UInt8].self, ByteBuffer(cbor: "82 01 02")) == [1, 2])
        #expect(try Self.decode(Data.self, ByteBuffer(cbor: "82 01 02")) == Data([1, 2]))
        #expect(throws: MessageCoding.Failure.self) { try Self.decode([Int].self, ByteBuffer(cbor: "42 01 02")) }
    }
}
