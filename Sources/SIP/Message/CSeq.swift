/// The number of a request in its dialog, and its method.
///
/// Source: RFC 3261, section 20.16 and 8.1.1.5
package struct CSeq: HeaderValue {
    package var number: UInt32
    package var method: SIPMethod

    package init(_ number: UInt32, _ method: SIPMethod) {
        (self.number, self.method) = (number, method)
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let number: UInt32 = scanner.take(while: { $0.isDigit })?.decimal(), number <= 0x7FFF_FFFF,
            scanner.next?.isBlank == true, let method = SIPMethod(parsing: scanner.rest.trimmed)
        else { throw invalid("CSeq", value, "Write a number below 2^31 and the method.") }
        (self.number, self.method) = (number, method)
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes.append(decimal: number)
        bytes.append(.space)
        bytes += method.name.utf8
    }
}

/// Which reliable provisional response is acknowledged (RFC 3262, section 7.2).
package struct RAck: HeaderValue {
    package var responseNumber: UInt32
    package var cSeq: CSeq

    package init(responseNumber: UInt32, cSeq: CSeq) {
        (self.responseNumber, self.cSeq) = (responseNumber, cSeq)
    }

    package init(parsing value: Bytes) throws(SIPError) {
        var scanner = FieldScanner(value)
        guard let number: UInt32 = scanner.take(while: { $0.isDigit })?.decimal(), number > 0,
            scanner.next?.isBlank == true
        else { throw invalid("RAck", value, "Write the RSeq, the CSeq and the method.") }
        responseNumber = number
        cSeq = try CSeq(parsing: scanner.rest.trimmed)
    }

    package func serialize(into bytes: inout [UInt8]) {
        bytes.append(decimal: responseNumber)
        bytes.append(.space)
        cSeq.serialize(into: &bytes)
    }
}
