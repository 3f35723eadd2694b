internal import FoundationEssentials

/// Items as Swift values.
extension CBORItems {
    func isNull(_ item: Int) -> Bool {
        let head = head(item)
        return head.major == .simple && head.detail == CBORHead.Simple.null
    }

    func bool(_ item: Int) throws(CBORMisfit) -> Bool {
        let head = head(item)
        guard head.major == .simple else { throw misfit(head) }
        switch head.detail {
        case CBORHead.Simple.no: return false
        case CBORHead.Simple.yes: return true
        default: throw misfit(head)
        }
    }

    func string(_ item: Int) throws(CBORMisfit) -> String {
        let head = head(item)
        guard head.major == .text else { throw misfit(head) }
        return String(decoding: utf8(item), as: UTF8.self)
    }

    /// An integer of exactly that value.
    @inline(__always)
    func integer<Number: FixedWidthInteger>(_ item: Int) throws(CBORMisfit) -> Number {
        let head = head(item)
        switch head.major {
        case .unsigned:
            if let number = Number(exactly: head.argument) { return number }
        case .negative:
            if let least = Int64(exactly: head.argument), let number = Number(exactly: ~least) { return number }
        default: throw misfit(head)
        }
        throw .range(head.major == .unsigned ? "\(head.argument)" : "-1 - \(head.argument)")
    }

    /// A number with or without a fraction, the nearest one where it has none of exactly that value.
    func double(_ item: Int) throws(CBORMisfit) -> Double {
        let head = head(item)
        switch head.major {
        case .unsigned: return Double(head.argument)
        case .negative: return -1 - Double(head.argument)
        case .simple:
            switch head.detail {
            case CBORHead.Simple.double: return Double(bitPattern: head.argument)
            case CBORHead.Simple.float: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: head.argument)))
            case CBORHead.Simple.half: return Double(Self.float(half: UInt16(truncatingIfNeeded: head.argument)))
            default: throw misfit(head)
            }
        default: throw misfit(head)
        }
    }

    /// As `double`; a number beyond a Float's is refused instead of made infinite.
    func float(_ item: Int) throws(CBORMisfit) -> Float {
        let head = head(item)
        if head.major == .simple, head.detail == CBORHead.Simple.float {
            return Float(bitPattern: UInt32(truncatingIfNeeded: head.argument))
        }
        let exact = try double(item)
        let number = Float(exact)
        guard number.isFinite || !exact.isFinite else { throw .range("\(exact)") }
        return number
    }

    func isBytes(_ item: Int) -> Bool { head(item).major == .bytes }

    func bytes(_ item: Int) -> UnsafeRawBufferPointer { utf8(item) }

    /// The values of an array or the pairs of a map.
    func count(_ item: Int) -> Int { Int(head(item).argument) }

    func misfit(_ head: CBORHead) -> CBORMisfit {
        head.major == .simple && head.detail == CBORHead.Simple.null ? .null : .kind(head.name)
    }

    /// Source: IEEE 754 binary16, as in RFC 8949, appendix D.
    private static func float(half: UInt16) -> Float {
        let exponent = Int(half >> 10 & 0x1F)
        let fraction = Float(half & 0x3FF)
        let magnitude: Float =
            switch exponent {
            case 0: fraction / 16_777_216
            case 31: fraction == 0 ? .infinity : .nan
            default: Float(sign: .plus, exponent: exponent - 25, significand: fraction + 1024)
            }
        return half & 0x8000 == 0 ? magnitude : -magnitude
    }
}
