import ArgumentParser
internal import CallBasics
import SIP

/// How a push service wakes the phone that an account is registered for.
struct PushOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The push service, such as fcm; Apple's by --push-team.", valueName: "name"))
    var pushProvider: String?

    @Option(help: ArgumentHelp("What pn-param says with --push-provider, as a project.", valueName: "text"))
    var pushParam: String?

    @Option(help: ArgumentHelp("The token with --push-provider.", valueName: "token"))
    var pushPrid: String?

    @Option(help: ArgumentHelp("The team of an application of Apple's push service.", valueName: "id"))
    var pushTeam: String?

    @Option(help: ArgumentHelp("The bundle of the application, such as org.example.phone.", valueName: "id"))
    var pushBundle: String?

    @Option(help: ArgumentHelp("The token that wakes it for calls.", valueName: "token"))
    var pushVoipToken: String?

    @Option(help: ArgumentHelp("The token that wakes it for texts.", valueName: "token"))
    var pushRemoteToken: String?

    var isGiven: Bool {
        [pushProvider, pushParam, pushPrid, pushTeam, pushBundle, pushVoipToken, pushRemoteToken].contains { $0 != nil }
    }

    func validate() throws { _ = try parameters() }

    /// What Contact says of push; nil when nothing is given.
    ///
    /// - Throws: `ValidationError` when it cannot be used
    func parameters() throws -> PushParameters? {
        guard isGiven else { return nil }
        do throws(SIPError) {
            if let pushProvider {
                guard pushTeam == nil, pushBundle == nil, pushVoipToken == nil, pushRemoteToken == nil else {
                    throw SIPError(
                        .badRequest,
                        "'--push-team' and its like are for Apple's service. Leave out --push-provider, or them."
                    )
                }
                return try PushParameters(
                    provider: pushProvider,
                    parameter: pushParam,
                    token: Secret(pushPrid ?? "")
                )
            }
            var tokens: [PushParameters.Service: Secret] = [:]
            tokens[.voip] = pushVoipToken.map { Secret($0) }
            tokens[.remote] = pushRemoteToken.map { Secret($0) }
            guard pushParam == nil, pushPrid == nil else {
                throw SIPError(.badRequest, "'--push-param' and '--push-prid' belong to --push-provider. Give it.")
            }
            return try PushParameters(team: pushTeam ?? "", bundle: pushBundle ?? "", tokens: tokens)
        } catch {
            throw ValidationError(error.message)
        }
    }
}
