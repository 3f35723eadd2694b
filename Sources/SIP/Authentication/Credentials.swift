/// A user's name with what proves it: a password, or its hashes for some realms.
///
/// A server keeps the same of its users. A description shows the name alone.
package struct Credentials: Hashable, Sendable {
    /// H(user:realm:password), which can stand for the password in one realm with one hash function.
    package struct HA1: Hashable, Sendable {
        let realm: Bytes
        let hash: DigestHash
        let value: Secret

        /// The hash in hexadecimal digits; nil when they are not as many as `hash` gives.
        package init?(_ digits: String, realm: String, hash: DigestHash) {
            let digits = Bytes(digits)
            guard digits.count == hash.digitCount, digits.allSatisfy({ $0.hexadecimalValue != nil }) else { return nil }
            (self.realm, self.hash) = (Bytes(realm), hash)
            value = Secret(digits.map(\.lowercase)[...])
        }
    }

    package let userName: Bytes
    private let password: Secret?
    /// The only realm that the password is for; nil for any.
    private let realm: Bytes?
    private let hashes: [HA1]

    /// A password, for any realm or for one.
    package init(userName: String, password: String, realm: String? = nil) {
        self.userName = Bytes(userName)
        self.password = Secret(password)
        self.realm = realm.map { Bytes($0) }
        hashes = []
    }

    /// Hashes in place of a password; in other realms, or with other hash functions, they prove nothing.
    package init(userName: String, hashes: [HA1]) {
        self.userName = Bytes(userName)
        (password, realm, self.hashes) = (nil, nil, hashes)
    }

    /// What is hashed first of all; nil when nothing is known for the realm and the function.
    func ha1(realm: Bytes, hash: DigestHash) -> Secret? {
        if let stored = hashes.first(where: { $0.realm == realm && $0.hash == hash }) { return stored.value }
        guard let password, self.realm == nil || self.realm == realm else { return nil }
        return Secret(hash.hex(userName, realm, password.bytes))
    }

    /// The name that is sent where names are to be hidden (RFC 7616, section 3.4.4).
    package func userHash(realm: Bytes, hash: DigestHash) -> Bytes { hash.hex(userName, realm) }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String { "credentials of \(userName.excerpt)" }
    package var debugDescription: String { description }
}
