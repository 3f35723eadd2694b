extension SIPMessage: CustomStringConvertible, CustomReflectable {
    /// Appends the message in the strict form.
    package func serialize(into bytes: inout [UInt8]) { serialize(into: &bytes, isRedacted: false) }

    private func serialize(into bytes: inout [UInt8], isRedacted: Bool) {
        bytes.reserveCapacity(bytes.count + storage.count + 64)
        serializeStartLine(into: &bytes)
        // Each value has a line of its own, as long as there are not more of these than may be.
        let keepsLines = fields.count >= MessageLimits.lineCount
        var former: HeaderField?
        for field in fields where field.name != .contentLength {
            if keepsLines, let former, field.isInLine(of: former) {
                bytes.removeLast(2)
                bytes += ", ".utf8
            } else {
                serializeName(of: field, into: &bytes)
                bytes += ": ".utf8
            }
            former = field
            if isRedacted, isSecret(field) {
                let value = try? AuthenticationValue(parsing: storage[field.valueRange.range])
                bytes += (value?.description ?? Secret("").description).utf8
            } else {
                bytes += storage[field.valueRange.range]
            }
            bytes += "\r\n".utf8
        }
        bytes += "Content-Length: ".utf8
        bytes.append(decimal: UInt(bodyBytes.count))
        bytes += "\r\n\r\n".utf8
        bytes += bodyBytes
    }

    /// No less than the count of `bytes`, and known without writing.
    var byteCountAtMost: Int {
        fields.reduce(startBytes.count + bodyBytes.count + (method?.name.utf8.count ?? 0) + Self.fixedByteCount) {
            $0 + $1.valueRange.range.count + max($1.name.canonical.utf8CodeUnitCount, $1.nameRange.range.count) + 4
        }
    }

    /// More than the rest of a start line and Content-Length take.
    private static let fixedByteCount = 128

    /// The message as it is written.
    package var bytes: [UInt8] {
        var written: [UInt8] = []
        serialize(into: &written)
        return written
    }

    /// The message as text, without what proves a password; what is not UTF-8 in it is replaced.
    public var description: String {
        var written: [UInt8] = []
        serialize(into: &written, isRedacted: true)
        return String(decoding: written, as: UTF8.self)
    }

    /// Nothing, since the bytes hold what the description leaves out.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Whether a header proves a password, to the server or back from it.
    private func isSecret(_ field: HeaderField) -> Bool {
        switch field.name {
        case .authorization, .proxyAuthorization, .authenticationInfo: true
        case .other: storage[field.nameRange.range].isNamed("Proxy-Authentication-Info")
        default: false
        }
    }

    private func serializeStartLine(into bytes: inout [UInt8]) {
        if let method {
            bytes += method.name.utf8
            bytes.append(.space)
            bytes += startBytes
            bytes += " SIP/2.0\r\n".utf8
        } else if let statusCode {
            bytes += "SIP/2.0 ".utf8
            bytes.append(decimal: UInt(statusCode))
            bytes.append(.space)
            bytes += startBytes
            bytes += "\r\n".utf8
        }
    }
}
