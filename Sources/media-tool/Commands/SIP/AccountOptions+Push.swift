import ArgumentParser
internal import CallBasics
import SIP

/// How a push service wakes the phone that an account is registered for.
extension AccountOptions {
    var wantsPush: Bool {
        [pushProvider, pushParam, pushPrid, pushTeam, pushBundle, pushVoipToken, pushRemoteToken].contains { $0 != nil }
    }

    /// What Contact says of push; nil when nothing is given.
    ///
    /// - Throws: `ValidationError` when it cannot be used
    func pushParameters() throws -> PushParameters? {
        guard wantsPush else { return nil }
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
