/// Keys of SRTP in a description.
///
///     a=crypto:<tag> <suite> inline:<key and salt>[|<lifetime>][|<MKI>:<length>][;inline:...] [<parameter> ...]
///
/// Source: RFC 4568, sections 4, 6 and 9.1.
package struct CryptoAttribute: Hashable, Sendable {
    /// A master key with its salt.
    package struct Key: Hashable, Sendable {
        /// In Base64, as it was written.
        package var keyAndSalt: String
        /// How many packets the key is good for; nil for as many as the suite allows.
        package var lifetime: UInt64?
        /// The number that tells the key in each packet, and how many octets it takes there; nil for a single key.
        package var identifier: Identifier?

        package init(keyAndSalt: String, lifetime: UInt64? = nil, identifier: Identifier? = nil) {
            (self.keyAndSalt, self.lifetime, self.identifier) = (keyAndSalt, lifetime, identifier)
        }
    }

    /// A master key identifier.
    package struct Identifier: Hashable, Sendable {
        /// A number that is larger than 64 bits is kept in its last 64.
        package var value: UInt64
        package var byteCount: UInt8
    }

    /// What the answer names to take this line, up to nine digits.
    package var tag: UInt32
    /// Such as AES_CM_128_HMAC_SHA1_80, as it was written.
    package var suite: String
    package var keys: [Key]
    /// What else is asked for, such as UNENCRYPTED_SRTCP.
    package var parameters: [String]

    package init(tag: UInt32, suite: String, key: Key, parameters: [String] = []) {
        (self.tag, self.suite, keys, self.parameters) = (tag, suite, [key], parameters)
    }

    /// As it is written behind `a=crypto:`.
    package var value: String {
        ([String(tag), suite, keys.map(\.text).joined(separator: ";")] + parameters).joined(separator: " ")
    }

    /// Throws nothing: a line that is not understood is nil, and another is taken.
    init?(parsing value: Bytes) {
        var rest = value
        guard let tagField = rest.takeField(), 1...9 ~= tagField.count, let tag: UInt32 = tagField.decimal(),
            let suite = rest.takeField(), var keyField = rest.takeField()
        else { return nil }
        self.tag = tag
        self.suite = suite.text
        keys = []
        while !keyField.isEmpty {
            guard let key = Key(parsing: keyField.take(before: UInt8(ascii: ";"))) else { return nil }
            keys.append(key)
        }
        parameters = []
        while let parameter = rest.takeField() { parameters.append(parameter.text) }
    }
}

extension CryptoAttribute.Key {
    fileprivate var text: String {
        var parts = ["inline:\(keyAndSalt)"]
        if let lifetime { parts.append("\(lifetime)") }
        if let identifier { parts.append("\(identifier.value):\(identifier.byteCount)") }
        return parts.joined(separator: "|")
    }

    fileprivate init?(parsing field: Bytes) {
        var rest = field
        guard rest.take(before: UInt8(ascii: ":")).isNamed("inline") else { return nil }
        let key = rest.take(before: UInt8(ascii: "|"))
        guard !key.isEmpty, key.allSatisfy(\.isVisible) else { return nil }
        keyAndSalt = key.text
        while !rest.isEmpty {
            var part = rest.take(before: UInt8(ascii: "|"))
            if part.contains(UInt8(ascii: ":")) {
                guard let identifier = CryptoAttribute.Identifier(parsing: part), self.identifier == nil else {
                    return nil
                }
                self.identifier = identifier
            } else {
                guard lifetime == nil, identifier == nil else { return nil }
                let base: UInt64? = part.take(before: UInt8(ascii: "^")).decimal()
                guard let base else { return nil }
                guard !part.isEmpty else {
                    lifetime = base
                    continue
                }
                guard base == 2, let exponent: UInt8 = part.decimal(), exponent < 64 else { return nil }
                lifetime = 1 << UInt64(exponent)
            }
        }
    }
}

extension CryptoAttribute.Identifier {
    fileprivate init?(parsing field: Bytes) {
        var rest = field
        let digits = rest.take(before: UInt8(ascii: ":"))
        guard let byteCount: UInt8 = rest.decimal(), 1...128 ~= byteCount, !digits.isEmpty,
            digits.allSatisfy({ 0x30...0x39 ~= $0 })
        else { return nil }
        self.byteCount = byteCount
        value = digits.reduce(0) { $0 &* 10 &+ UInt64($1 - 0x30) }
    }
}
