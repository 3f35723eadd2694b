public import CallCore
internal import FoundationEssentials
internal import SharedCore

/// An account of a group of processes: who they are at a server, together.
public struct GroupAccount: Hashable, Sendable {
    /// How a push service wakes a process of the group.
    public enum Push: Hashable, Sendable, Codable {
        /// Apple's service, with a token for each use.
        case apple(team: String, bundle: String, callToken: String?, textToken: String?)
        /// Another service, such as `fcm`, with one token for all.
        case other(service: String, project: String?, token: String)
    }

    /// The address of record, such as `sip:alice@example.org`, or `sips:` for TLS.
    public let address: String
    /// The name for authentication; nil for the user part of the address.
    public var userName: String?
    /// The name that others see.
    public var displayName: String?
    /// The server to register at; nil for the domain of the address.
    public var registrar: String?
    /// Proxies that requests go through, such as `sip:192.0.2.1;lr`.
    public var proxies: [String] = []
    /// How long to be registered, in seconds.
    public var expires: UInt32 = 3600
    /// What proves it; nil where nothing is asked for.
    public var secret: PhoneSecret?
    /// How a push service wakes a process; nil when none does.
    public var push: Push?
    /// The store that its secrets are in, by the name that the processes of the group give it; nil for the usual one.
    public var secretStore: String?

    /// An account.
    public init(_ address: String) { self.address = address }

    /// As a phone registers it.
    ///
    /// - Throws: `PhoneError` when a part of it cannot be used
    public func phoneAccount() throws(PhoneError) -> PhoneAccount {
        var account = try PhoneAccount(address, userName: userName, secret: secret)
        (account.displayName, account.registrar, account.proxies) = (displayName, registrar, proxies)
        account.expires = expires
        account.push =
            switch push {
            case .apple(let team, let bundle, let callToken, let textToken)?:
                try PhonePush(team: team, bundle: bundle, callToken: callToken, textToken: textToken)
            case .other(let service, let project, let token)?:
                try PhonePush(service: service, project: project, token: token)
            case nil: nil
            }
        return account
    }
}

extension GroupAccount {
    /// What stands apart from the store.
    private struct Secrets: Codable {
        var secret: PhoneSecret?
        var push: Push?
    }

    /// What a part that is not secret is called in the store.
    private enum Name {
        static let (user, name, registrar, proxies, expires) = ("user", "name", "registrar", "proxies", "expires")
        static let secrets = "secrets"
    }

    /// What may stand in the store, where every process of the group reads it.
    var stored: StoredAccount {
        var parameters: [String: String] = [Name.expires: String(expires)]
        parameters[Name.user] = userName
        parameters[Name.name] = displayName
        parameters[Name.registrar] = registrar
        parameters[Name.secrets] = secretStore
        if !proxies.isEmpty { parameters[Name.proxies] = proxies.joined(separator: " ") }
        return StoredAccount(address: address, parameters: parameters)
    }

    /// The rest of it; nil when there is none.
    func secretBytes() throws -> [UInt8]? {
        guard secret != nil || push != nil else { return nil }
        return Array(try JSONEncoder().encode(Secrets(secret: secret, push: push)))
    }

    /// Reads what is in the store; what is not understood is passed over.
    init(_ stored: StoredAccount) {
        address = stored.address
        userName = stored.parameters[Name.user]
        displayName = stored.parameters[Name.name]
        registrar = stored.parameters[Name.registrar]
        proxies = (stored.parameters[Name.proxies] ?? "").split(separator: " ").map(String.init)
        expires = stored.parameters[Name.expires].flatMap { UInt32($0) } ?? 3600
        secretStore = stored.parameters[Name.secrets]
    }

    /// Adds the rest of it.
    ///
    /// - Throws: `SecretError` when it is none
    mutating func add(secret bytes: [UInt8]?) throws(SecretError) {
        guard let bytes else { return }
        // What is wrong with it is not told: that could show it.
        guard let secrets = try? JSONDecoder().decode(Secrets.self, from: Data(bytes)) else {
            throw SecretError(.invalid, "What is kept as the secret of \(address) is none. Set its password anew.")
        }
        (secret, push) = (secrets.secret, secrets.push)
    }
}
