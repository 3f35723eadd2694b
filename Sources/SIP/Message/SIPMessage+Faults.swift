internal import CallBasics

extension SIPMessage {
    /// The first header whose value breaks its grammar, and where that value begins in the bytes that were read; nil when
    /// each alone is well-formed.
    package var brokenHeader: (name: HeaderName, offset: Int)? {
        let broken = fields.first { field in
            do {
                try Self.check(storage[field.valueRange.range], of: field.name)
                return false
            } catch {
                return true
            }
        }
        return broken.map { ($0.name, $0.valueRange.range.lowerBound) }
    }

    private static func check(_ value: Bytes, of name: HeaderName) throws(SIPError) {
        switch name {
        case .via: _ = try Via(parsing: value)
        case .from, .to, .route, .recordRoute: _ = try NameAddress(parsing: value)
        case .contact where value != [0x2A]: _ = try NameAddress(parsing: value).expires()
        case .cSeq: _ = try CSeq(parsing: value)
        case .maxForwards, .expires, .contentLength: _ = try WholeNumber(parsing: value)
        case .contentType: _ = try MediaType(parsing: value)
        default: break
        }
    }
}
