/// A header that is one number: Max-Forwards, Expires, Min-Expires, RSeq, Content-Length, Flow-Timer.
package struct WholeNumber: HeaderValue {
    package var value: UInt32

    package init(_ value: UInt32) { self.value = value }

    package init(parsing value: Bytes) throws(SIPError) {
        guard let number: UInt32 = value.decimal() else {
            throw invalid("a header with a number", value, "Write decimal digits, below 2^32.")
        }
        self.value = number
    }

    package func serialize(into bytes: inout [UInt8]) { bytes.append(decimal: value) }
}
