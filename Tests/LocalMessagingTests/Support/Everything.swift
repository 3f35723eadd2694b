import Foundation
import NIOCore

@testable import LocalMessaging

/// One of each shape that `Codable` has.
struct Everything: Codable, Equatable {
    enum Color: String, Codable {
        case red
        case blue
    }

    enum Shape: Codable, Equatable {
        case point
        case circle(radius: Double)
        case line(Int, Int)
        indirect case group([Shape])
    }

    struct Part: Codable, Equatable {
        var isOn = true
        var level: Float = -0.5
    }

    var least: [Int64] = [.min, Int64(Int32.min) - 1, -1, 0, .max]
    var most: [UInt64] = [0, 23, 24, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max]
    var small: [Int8] = [.min, .max]
    var byte: UInt8 = 255
    var short: Int16 = .min
    var wide: UInt16 = .max
    var number: Int32 = .min
    var large: UInt32 = .max
    var word: UInt = .max
    var fractions: [Double] = [0, -0.0, 0.1, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude]
    var float: Float = .pi
    var text = "é \u{1F4DE} \u{0}"
    var empty = ""
    var there: Int? = 7
    var missing: Int?
    var holes: [String?] = ["a", nil, ""]
    var data = Data([1, 2, 3])
    var bytes: [UInt8] = [0, 255]
    var maybeBytes: [UInt8]? = []
    var part = Part()
    var parts = [Part(), Part(isOn: false)]
    var shapes: [Shape] = [.point, .circle(radius: 2), .line(3, 4), .group([.point, .group([])])]
    var color = Color.blue
    var byName = ["a": 1, "b": 2]
    var byNumber = [-1: "a", 7: "b"]
    var byColor = [Color.red: 1]
    var set: Set = [1, 2, 3]
    var date = Date(timeIntervalSinceReferenceDate: 0.25)
    var id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    var url = URL(string: "sip:anna@example.com")
    var range = 1..<5
    var deep = [[[1]], [], [[], [2, 3]]]

    static var payloads: [ByteBuffer] {
        get throws { [try MessageCoding.encode(Everything()), try MessageCoding.encode(Derived())] }
    }

    /// Decodes the bytes as several types, whatever comes of it.
    static func decode(_ bytes: ByteBuffer) {
        func decode<Value: Decodable>(_ type: Value.Type) {
            _ = try? MessageCoding.decode(type, from: bytes, within: MessageBounds(MessagingConfiguration()))
        }
        decode(Everything.self)
        decode(Derived.self)
        decode(Handshake.Introduction.self)
        decode([String: [Int8]].self)
        decode([Float?].self)
        decode([UInt8].self)
        decode(Data.self)
        decode(Bool.self)
    }
}

/// A class, whose part of a subclass's message is under a key of its own.
class Base: Codable {
    var name = "base"
}

final class Derived: Base {
    private enum CodingKeys: CodingKey {
        case number
    }

    var number = 300

    override init() { super.init() }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        number = try container.decode(Int.self, forKey: .number)
        try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try super.encode(to: container.superEncoder())
        try container.encode(number, forKey: .number)
    }
}
