/// Why a server passes nothing on.
package enum TURNError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It does not answer.
    case silent
    /// It does not know the user, or the password is another one.
    case unauthorized
    /// It wants a password by MD5, which OpenSSL does not offer here (FIPS mode).
    case noHash
    /// It refuses, for a reason of its own.
    case refused(code: Int, reason: String)
    /// What it says cannot be.
    case malformed
    /// It has an address of IPv4 and this side one of IPv6, or the other way round.
    case otherFamily
    /// There is no connection to it, for the reason told.
    case disconnected(String)

    package var description: String {
        switch self {
        case .silent: "it does not answer"
        case .unauthorized: "it does not take the user or the password"
        case .noHash: "it wants a password by MD5, which OpenSSL does not offer in FIPS mode"
        case .refused(let code, let reason): "it refuses (\(code) \(reason))"
        case .malformed: "it answers what no server of TURN does"
        case .otherFamily: "its address is of the other family, IPv4 or IPv6, than this side's"
        case .disconnected(let reason): reason
        }
    }
}
