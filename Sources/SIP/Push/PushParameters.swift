internal import CallBasics

/// How a push service reaches a phone that sleeps: what the URI of its Contact says.
///
///     ;pn-provider=apns;pn-param=TEAM.BUNDLE.voip&remote;pn-prid=TOKEN:voip&TOKEN:remote
///
/// Of Apple's service there may be a token for calls and one for the rest; of others there is one, as it is.
/// Source: RFC 8599, section 4
package struct PushParameters: Hashable, Sendable {
    /// What a token wakes a phone for.
    package enum Service: String, Hashable, Sendable, CaseIterable { case voip, remote }

    /// The service, such as `apns` or `fcm`; empty in a question which ones the network offers.
    package let provider: String
    /// Whether it only asks which services are offered (section 4.1.4).
    package let isQuery: Bool
    /// Whose application it is; nil but for Apple's service.
    package let team: String?
    package let bundle: String?
    package let services: [Service]
    package let tokens: [Service: Secret]
    /// Of other services, what pn-param and pn-prid say.
    package let parameter: String?
    package let token: Secret?
    /// Other parameters whose names begin with `pn-`, by name.
    package let others: [String: String]

    /// What the Contact of a phone says of push; nil when it says nothing.
    ///
    /// Throws: `badRequest` when it cannot be used
    package init?(of contact: NameAddress) throws(SIPError) {
        guard !contact.parameters.contains(where: { $0.name.isPush }) else {
            throw Self.refused("stands behind the brackets, where it is the header's. Put it into the URI")
        }
        let found = contact.uri.parameters.filter { $0.name.isPush }
        guard !found.isEmpty else { return nil }
        var values: [String: String] = [:]
        for parameter in found {
            let name = String(decoding: parameter.name.map(\.lowercase), as: UTF8.self)
            guard values[name] == nil else { throw Self.refused("is there twice: \(name.prefix(40)). Send it once") }
            values[name] = String(decoding: (parameter.value ?? []).unescaped, as: UTF8.self)
        }
        guard let provider = values.removeValue(forKey: "pn-provider") else {
            throw Self.refused("has no pn-provider. Send it")
        }
        let (parameter, token) = (values.removeValue(forKey: "pn-param"), values.removeValue(forKey: "pn-prid"))
        (self.provider, others) = (provider.lowercased(), values)
        isQuery = parameter == nil && token == nil
        guard !isQuery, self.provider == "apns" || self.provider == "apns.dev" else {
            (team, bundle, services, tokens) = (nil, nil, [], [:])
            (self.parameter, self.token) = (parameter, token.map { Secret($0) })
            return
        }
        let application = try Self.application(parameter ?? "")
        (team, bundle, services) = (application.team, application.bundle, application.services)
        tokens = try Self.tokens(token ?? "", application.services)
        (self.parameter, self.token) = (nil, nil)
    }

    /// What a phone of Apple's service registers with: a token for each service that may wake it.
    ///
    /// Throws: `badRequest` when a part is missing, or cannot be told from its neighbours
    package init(team: String, bundle: String, tokens: [Service: Secret], isDevelopment: Bool = false) throws(SIPError)
    {
        let parts = [team] + bundle.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard !team.contains("."), parts.allSatisfy({ !$0.isEmpty && !$0.contains("&") }) else {
            throw Self.refused("needs a team and a bundle, such as ABCD1234 and org.example.phone. Give both")
        }
        guard !tokens.isEmpty,
            tokens.values.allSatisfy({ !$0.bytes.isEmpty && !$0.bytes.contains(.colon) && !$0.bytes.contains(0x26) })
        else {
            throw Self.refused("needs a token, without ':' and '&', for each service. Give it")
        }
        (provider, isQuery) = (isDevelopment ? "apns.dev" : "apns", false)
        (self.team, self.bundle, self.tokens) = (team, bundle, tokens)
        services = Service.allCases.filter { tokens[$0] != nil }
        (parameter, token, others) = (nil, nil, [:])
    }

    /// What a phone of another service registers with.
    ///
    /// Throws: `badRequest` when there is no such service, or no token
    package init(provider: String, parameter: String?, token: Secret) throws(SIPError) {
        let name = provider.lowercased()
        guard Bytes(name).isToken, name != "apns", name != "apns.dev" else {
            throw Self.refused("needs a provider by its name, such as fcm; Apple's has a team and a bundle. Give it")
        }
        guard !token.bytes.isEmpty, parameter != "" else { throw Self.refused("has an empty value. Leave it out") }
        (self.provider, isQuery, self.parameter, self.token) = (name, false, parameter, token)
        (team, bundle, services, tokens, others) = (nil, nil, [], [:], [:])
    }

    /// As the URI of a Contact says it, always in this spelling: registrars compare it.
    package var written: [RegistrationConfiguration.PushParameter] {
        var param = parameter
        var prid = token?.bytes.text
        if let team, let bundle {
            param = "\(team).\(bundle)." + services.map(\.rawValue).joined(separator: "&")
            prid = services.compactMap { service in tokens[service].map { "\($0.bytes.text):\(service.rawValue)" } }
                .joined(separator: "&")
        }
        let pairs = [("pn-provider", provider as String?), ("pn-param", param), ("pn-prid", prid)]
        return pairs.compactMap { name, value in value.map { .init(name, Self.escaped($0)) } }
            + others.sorted { $0.key < $1.key }.map { .init($0.key, Self.escaped($0.value)) }
    }

    /// What a parameter of a URI cannot hold stands as `%XX` (RFC 3261, section 25.1: paramchar).
    private static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte in
            byte.isAlphanumeric || "-_.!~*'()[]/:&+$".utf8.contains(byte)
                ? [byte] : [.percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func application(_ text: String) throws(SIPError)
        -> (team: String, bundle: String, services: [Service])
    {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 3, let team = parts.first, let names = parts.last, parts.allSatisfy({ !$0.isEmpty }) else {
            throw refused("has no TEAM.BUNDLE.SERVICE in pn-param. Send it")
        }
        var services: [Service] = []
        for name in names.split(separator: "&", omittingEmptySubsequences: false) {
            guard let service = Service(rawValue: name.lowercased()), !services.contains(service) else {
                throw refused("names a service in pn-param that is none of voip and remote, or twice. Name each once")
            }
            services.append(service)
        }
        return (String(team), parts.dropFirst().dropLast().joined(separator: "."), services)
    }

    private static func tokens(_ text: String, _ services: [Service]) throws(SIPError) -> [Service: Secret] {
        var tokens: [Service: Secret] = [:]
        let pieces = text.split(separator: "&", omittingEmptySubsequences: false)
        for piece in pieces {
            let parts = piece.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let token = parts.first, !token.isEmpty else {
                throw refused("has an empty token in pn-prid. Send it")
            }
            var service = parts.count == 2 ? Service(rawValue: parts[1].lowercased()) : nil
            // One alone is for what pn-param names.
            if parts.count == 1, pieces.count == 1 { service = services.count == 1 ? services[0] : .remote }
            guard let service else { throw refused("has a token in pn-prid without its service. Write TOKEN:voip") }
            guard services.contains(service) else {
                throw refused("has a token for \(service.rawValue), which pn-param does not name. Name it there")
            }
            guard tokens.updateValue(Secret(String(token)), forKey: service) == nil else {
                throw refused("has two tokens for \(service.rawValue). Send one")
            }
        }
        guard tokens.count == services.count else {
            throw refused("names more services in pn-param than it has tokens. Send one for each")
        }
        return tokens
    }

    private static func refused(_ what: String) -> SIPError { SIPError(.badRequest, "The push parameter \(what).") }
}

extension SIPURI {
    /// Its text without what a push service is told, which nobody else may know.
    package var withoutPush: String {
        let pieces = bytes.split(separator: .semicolon, omittingEmptySubsequences: false)
        return pieces.enumerated().filter { $0.offset == 0 || !$0.element.isPush }.map(\.element.text)
            .joined(separator: ";")
    }
}

extension Bytes {
    fileprivate var isPush: Bool { prefix(3).isNamed("pn-") }
}
