import CallBasics
import MediaEngine
import SDP

/// The side of ICE that has a public address (ICE-lite): it answers checks of the other side, which says what way is used.
///
///     check, signed with our password ──► answer, signed ──► its source is a way to the other side
///
/// It never asks. The way in use is the one that the other side nominates, and the best that it has checked until then. What is
/// not signed is not answered: nobody is reached by way of this side.
/// Source: RFC 8445, sections 2.5 and 7.3; RFC 8489, section 9.1.
struct LiteAgent {
    /// An address of the other side.
    private struct Way {
        let source: SocketAddress
        let priority: UInt32
        /// Whether its last check nominates it, and whether one ever did.
        let nominates: Bool
        var wasNominated: Bool
        let lastCheck: MediaTime
    }

    private let key: STUNKey
    /// What USERNAME says of both sides.
    private let name: String
    /// Where checks came from, the last one at the end.
    private var ways: [Way] = []
    private var current: Way?
    /// Checks that proved no password.
    private(set) var refusedCount = 0

    init(_ agreed: AgreedICE) {
        key = STUNKey(shortTerm: agreed.local.password)
        name = agreed.local.userFragment + ":" + agreed.remote.userFragment
    }

    /// Where to send to; nil before the first check.
    var destination: SocketAddress? { current?.source }

    /// When the way in use was checked last.
    var lastCheck: MediaTime? { current?.lastCheck }

    /// Whether the other side has shown that it is there.
    func knows(_ source: SocketAddress) -> Bool { ways.contains { $0.source == source } }

    /// Takes a datagram of STUN.
    ///
    /// - Returns: What is sent back to `source`; nil for what is no check, or of somebody else.
    mutating func answer(_ datagram: [UInt8], from source: SocketAddress, at now: MediaTime) -> [UInt8]? {
        guard let check = STUNMessage(parsing: datagram), check.kind == .request, check.method == .binding else {
            return nil
        }
        guard check.hasRightFingerprint != false, check.text(.username) == name, check.isSigned(with: key) else {
            refusedCount += 1
            return nil
        }
        let unknown = check.notUnderstood
        guard unknown.isEmpty else {
            return refusal(of: check, 420, "Unknown Attribute") { $0.append(unknown: unknown) }
        }
        // Two sides that only answer would never meet; the other one has to control (RFC 8445, section 7.3.1.1).
        guard check[.iceControlled] == nil else { return refusal(of: check, 487, "Role Conflict") }
        guard let priority = check.number(.priority) else { return refusal(of: check, 400, "Bad Request") }
        let nominates = check[.useCandidate] != nil
        note(Way(source: source, priority: priority, nominates: nominates, wasNominated: nominates, lastCheck: now))
        return signed(.success, check) { $0.append(.xorMappedAddress, source) }
    }

    private func refusal(
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

    private mutating func note(_ way: Way) {
        var way = way
        if let index = ways.firstIndex(where: { $0.source == way.source }) {
            way.wasNominated = way.nominates || ways[index].wasNominated
            ways.remove(at: index)
        } else if ways.count == Self.wayLimit {
            let place = ways.firstIndex { $0.source != current?.source } ?? 0
            ways.remove(at: place)
        }
        ways.append(way)
        if shouldTake(way) { current = way }
    }

    /// The newest nomination counts; of the ways that old peers nominate with each check the best one does, for as long as it is
    /// checked.
    private func shouldTake(_ way: Way) -> Bool {
        guard let current, current.source != way.source else { return true }
        let isSilent = way.lastCheck - current.lastCheck > Self.silenceLimit
        let isBetter = way.priority > current.priority || isSilent
        if way.nominates { return !current.nominates || isBetter }
        if current.wasNominated { return way.wasNominated && isSilent }
        return isBetter
    }

    private static let wayLimit = 16
    /// Longer than the longest pause between two checks of a way in use (RFC 7675, section 5.1).
    private static let silenceLimit = Duration.seconds(8)
}
