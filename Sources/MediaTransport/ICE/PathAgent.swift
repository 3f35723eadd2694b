import CallBasics
import MediaEngine
import SDP

/// One side of ICE, as the leg sees it whose way it finds.
///
/// Datagrams of STUN and time come in; what is to be sent, and where the other side is, come out.
/// Thread: one at a time.
/// Source: RFC 8445.
protocol PathAgent {
    /// Where to send to; nil before a way is known.
    var destination: Route? { get }
    /// When the way in use is taken for gone unless something is heard; nil before there is one.
    var end: MediaTime? { get }
    /// When `advance` has something to do, unless something comes before.
    var next: MediaTime? { get }
    /// Checks that proved no password.
    var refusedCount: Int { get }

    /// Whether the other side has shown that it is there.
    func knows(_ route: Route) -> Bool
    /// Whether the way in use has not been agreed to for so long that another one is to be looked for.
    func isLost(at now: MediaTime) -> Bool
    /// Whether it goes without a relay from now on.
    func needsNoRelay(at now: MediaTime) -> Bool
    /// Takes a datagram of STUN.
    mutating func take(_ datagram: [UInt8], by route: Route, at now: MediaTime)
    /// Takes addresses of the other side: those that are new are checked, and those that did not answer once more.
    mutating func add(_ candidates: [ICECandidate], at now: MediaTime)
    /// Does what its time has come for.
    mutating func advance(to now: MediaTime)
    /// What is to be sent, in order, since it was asked last.
    mutating func takeDatagrams() -> [(bytes: [UInt8], route: Route)]
}

/// Tells checks of the other side from those of anybody else, and signs the answers.
///
/// Source: RFC 8445, section 7.3; RFC 8489, section 9.1.
struct CheckGuard {
    private let key: STUNKey
    /// What USERNAME says of both sides.
    private let name: String
    /// What begins it in this search for the way.
    private let ownName: String
    /// Checks that proved no password.
    private(set) var refusedCount = 0

    init(_ session: AgreedICE.Session) {
        key = STUNKey(shortTerm: session.local.password)
        ownName = session.local.userFragment + ":"
        name = ownName + session.remote.userFragment
    }

    /// What a check says.
    enum Reading {
        case asks(priority: UInt32, nominates: Bool)
        /// It cannot be understood, and this is what to answer.
        case refused([UInt8])
    }

    /// Reads a request; nil for one of somebody else, which is never answered: nobody is reached by way of this side.
    mutating func read(_ check: STUNMessage) -> Reading? {
        let told = check.text(.username)
        guard check.hasRightFingerprint != false, told == name, check.isSigned(with: key) else {
            // The search of before, or the next one, has another name.
            if told?.hasPrefix(ownName) ?? true { refusedCount += 1 }
            return nil
        }
        let unknown = check.notUnderstood
        guard unknown.isEmpty else {
            return .refused(refusal(of: check, 420, "Unknown Attribute") { $0.append(unknown: unknown) })
        }
        guard let priority = check.number(.priority) else {
            return .refused(refusal(of: check, 400, "Bad Request"))
        }
        return .asks(priority: priority, nominates: check[.useCandidate] != nil)
    }

    func refusal(
        of check: STUNMessage,
        _ code: Int,
        _ reason: String,
        _ append: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        signed(.failure, check) {
            $0.append(errorCode: code, reason: reason)
            append(&$0)
        }
    }

    func answer(to check: STUNMessage, from source: SocketAddress) -> [UInt8] {
        signed(.success, check) { $0.append(.xorMappedAddress, source) }
    }

    private func signed(
        _ kind: STUNMessage.Class,
        _ check: STUNMessage,
        _ append: (inout STUNWriter) -> Void
    ) -> [UInt8] {
        var writer = STUNWriter(kind, .binding, check.transaction)
        append(&writer)
        writer.sign(with: key)
        return writer.finish(withFingerprint: true)
    }
}
