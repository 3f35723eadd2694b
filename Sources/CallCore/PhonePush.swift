internal import CallBasics
package import SIP

/// How a push service wakes a phone: what its registrations tell the server.
///
/// It shows no token: neither its description nor a dump of it.
/// Source: RFC 8599
public struct PhonePush: Hashable, Sendable {
    let parameters: PushParameters
    /// Whether this phone refreshes its registration by itself in time, also while it sleeps; else it does so on a push.
    public var wakesItself = false

    package init(_ parameters: PushParameters) { self.parameters = parameters }

    /// Apple's push service, with a token for each use.
    ///
    /// - Parameters:
    ///   - team: Such as `ABCD1234`.
    ///   - bundle: Such as `org.example.phone`.
    ///   - callToken: Wakes it for calls; 64 hexadecimal digits as a rule.
    ///   - textToken: Wakes it for texts.
    ///   - isDevelopment: Whether the tokens are of the service for development.
    /// - Throws: `invalid` when a part is missing, or holds what cannot stand in it
    public init(
        team: String,
        bundle: String,
        callToken: String?,
        textToken: String?,
        isDevelopment: Bool = false
    ) throws(PhoneError) {
        var tokens: [PushParameters.Service: Secret] = [:]
        tokens[.voip] = callToken.map { Secret($0) }
        tokens[.remote] = textToken.map { Secret($0) }
        let all = tokens
        parameters = try PhoneError.wrapping(.invalid) { () throws(SIPError) in
            try PushParameters(team: team, bundle: bundle, tokens: all, isDevelopment: isDevelopment)
        }
    }

    /// Another push service, such as `fcm`, with one token for all.
    ///
    /// - Throws: `invalid` when it has no name or no token
    public init(service: String, project: String? = nil, token: String) throws(PhoneError) {
        parameters = try PhoneError.wrapping(.invalid) { () throws(SIPError) in
            try PushParameters(provider: service, parameter: project, token: Secret(token))
        }
    }
}
