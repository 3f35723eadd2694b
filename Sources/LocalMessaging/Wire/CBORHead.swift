/// The first byte or bytes of an item: what it is, and its number.
///
///     bit 7 6 5     4 3 2 1 0
///     | major type | 0...23 the number itself; 24, 25, 26, 27: it follows in 1, 2, 4 or 8 bytes |
///
/// Shape: numbers in network byte order.
/// Source: RFC 8949, section 3.
struct CBORHead {
    enum Major: UInt8 {
        case unsigned = 0
        /// -1 minus the number.
        case negative
        case bytes
        case text
        case array
        case map
        case tag
        /// false, true, null, and numbers with a fraction.
        case simple
    }

    /// Values of the low five bits of a simple item.
    enum Simple {
        static let no: UInt8 = 20
        static let yes: UInt8 = 21
        static let null: UInt8 = 22
        static let half: UInt8 = 25
        static let float: UInt8 = 26
        static let double: UInt8 = 27
    }

    let major: Major
    /// The low five bits.
    let detail: UInt8
    /// The number; of a fraction, its bits.
    let argument: UInt64
    /// Where what follows the head begins.
    let end: Int

    /// How the item is called in an error.
    var name: String {
        switch major {
        case .unsigned, .negative: "an integer"
        case .bytes: "bytes"
        case .text: "a text"
        case .array: "an array"
        case .map: "a map"
        case .tag: "a tag"
        case .simple:
            switch detail {
            case Simple.no, Simple.yes: "a truth value"
            case Simple.null: "null"
            case Simple.half, Simple.float, Simple.double: "a number with a fraction"
            default: "a simple value"
            }
        }
    }

    /// The number of bytes that a shortest head takes.
    static func byteCount(of argument: UInt64) -> Int {
        switch argument {
        case ..<24: 1
        case ...0xFF: 2
        case ...0xFFFF: 3
        case ...0xFFFF_FFFF: 5
        default: 9
        }
    }

    /// Writes the shortest head to memory that has room for it.
    ///
    /// - Returns: its number of bytes.
    @discardableResult
    static func write(_ major: Major, _ argument: UInt64, to memory: UnsafeMutableRawPointer) -> Int {
        let type = major.rawValue << 5
        switch argument {
        case ..<24:
            memory.storeBytes(of: type | UInt8(argument), as: UInt8.self)
            return 1
        case ...0xFF:
            memory.storeBytes(of: type | 24, as: UInt8.self)
            memory.storeBytes(of: UInt8(argument), toByteOffset: 1, as: UInt8.self)
            return 2
        case ...0xFFFF:
            memory.storeBytes(of: type | 25, as: UInt8.self)
            memory.storeBytes(of: UInt16(argument).bigEndian, toByteOffset: 1, as: UInt16.self)
            return 3
        case ...0xFFFF_FFFF:
            memory.storeBytes(of: type | 26, as: UInt8.self)
            memory.storeBytes(of: UInt32(argument).bigEndian, toByteOffset: 1, as: UInt32.self)
            return 5
        default:
            memory.storeBytes(of: type | 27, as: UInt8.self)
            memory.storeBytes(of: argument.bigEndian, toByteOffset: 1, as: UInt64.self)
            return 9
        }
    }
}
