internal import CallBasics

/// What a header holds, read on demand and written in its strict form.
package protocol HeaderValue: Hashable, Sendable {
    /// Reads one value, without blanks around it.
    ///
    /// Throws: `badRequest` when the grammar is broken
    init(parsing value: Bytes) throws(SIPError)
    /// Appends the value.
    func serialize(into bytes: inout [UInt8])
}

extension HeaderValue {
    package var bytes: Bytes {
        var written: [UInt8] = []
        written.reserveCapacity(120)
        serialize(into: &written)
        return written[...]
    }
}

/// The error for a value that breaks the grammar of its header.
func invalid(_ header: StaticString, _ value: Bytes, _ remedy: StaticString) -> SIPError {
    SIPError(.badRequest, "The value \"\(value.excerpt)\" is none of \(header). \(remedy)")
}
