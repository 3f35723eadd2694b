internal import CallBasics
internal import SIP

/// What proves who an account is: a password, or its hashes for one realm, which can stand for it there and nowhere else.
///
/// It is encoded as it is: keep what comes of that where nobody else reads it. It shows nothing: neither its description nor a
/// dump of it.
/// Source: RFC 7616, section 3.4.2; RFC 8760
public struct PhoneSecret: Hashable, Sendable, Codable {
    private let password: String?
    private let realm: String?
    /// H(user:realm:password) by the name of the hash function.
    private let hashes: [String: String]?

    /// A password, for whatever realm asks.
    public init(password: String) { (self.password, realm, hashes) = (password, nil, nil) }

    /// The hashes of a password: MD5, SHA-256 and SHA-512-256, as far as the machine has them.
    ///
    /// - Parameters:
    ///   - password: It is not kept.
    ///   - userName: The name for authentication.
    ///   - realm: The realm, as the server names it.
    public init(hashing password: String, userName: String, realm: String) {
        var hashes: [String: String] = [:]
        for hash in DigestHash.allCases where hash.isAvailable {
            hashes["\(hash)"] = hash.hex(Bytes(userName), Bytes(realm), Bytes(password)).text
        }
        (self.password, self.realm, self.hashes) = (nil, realm, hashes)
    }

    func credentials(userName: String) -> Credentials? {
        if let password { return Credentials(userName: userName, password: password) }
        guard let realm, let hashes else { return nil }
        let known = DigestHash.allCases.compactMap { hash in
            hashes["\(hash)"].flatMap { Credentials.HA1($0, realm: realm, hash: hash) }
        }
        return Credentials(userName: userName, hashes: known)
    }
}

extension PhoneSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is one.
    public var description: String { "(secret)" }
    /// That it is one.
    public var debugDescription: String { description }
    /// Nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
