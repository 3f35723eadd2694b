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
struct LiteAgent: PathAgent {
    /// An address of the other side.
    private struct Way {
        let route: Route
        let priority: UInt32
        /// Whether its last check nominates it, and whether one ever did.
        let nominates: Bool
        var wasNominated: Bool
        let lastCheck: MediaTime
    }

    private var checks: CheckGuard
    /// Where checks came from, the last one at the end.
    private var ways: [Way] = []
    private var current: Way?
    private var leaving: [(bytes: [UInt8], route: Route)] = []

    init(_ agreed: AgreedICE) { checks = CheckGuard(agreed.session) }

    var destination: Route? { current?.route }
    var end: MediaTime? { current.map { $0.lastCheck + Self.endLimit } }
    var next: MediaTime? { nil }
    var refusedCount: Int { checks.refusedCount }

    func knows(_ route: Route) -> Bool { ways.contains { $0.route == route } }

    /// It has one address, to which the other side finds the way again.
    func isLost(at now: MediaTime) -> Bool { false }

    func needsNoRelay(at now: MediaTime) -> Bool { true }

    mutating func take(_ datagram: [UInt8], by route: Route, at now: MediaTime) {
        guard let check = STUNMessage(parsing: datagram), check.kind == .request, check.method == .binding,
            let reading = checks.read(check)
        else { return }
        leaving.append((answer(to: check, reading, by: route, at: now), route))
    }

    mutating func add(_ candidates: [ICECandidate], at now: MediaTime) {}
    mutating func advance(to now: MediaTime) {}

    mutating func takeDatagrams() -> [(bytes: [UInt8], route: Route)] {
        defer { leaving = [] }
        return leaving
    }

    private mutating func answer(
        to check: STUNMessage,
        _ reading: CheckGuard.Reading,
        by route: Route,
        at now: MediaTime
    ) -> [UInt8] {
        switch reading {
        case .refused(let refusal): return refusal
        // Two sides that only answer would never meet; the other one has to control (RFC 8445, section 7.3.1.1).
        case .asks where check[.iceControlled] != nil: return checks.refusal(of: check, 487, "Role Conflict")
        case .asks(let priority, let nominates):
            note(Way(route: route, priority: priority, nominates: nominates, wasNominated: nominates, lastCheck: now))
            return checks.answer(to: check, from: route.peer)
        }
    }

    private mutating func note(_ way: Way) {
        var way = way
        if let index = ways.firstIndex(where: { $0.route == way.route }) {
            way.wasNominated = way.nominates || ways[index].wasNominated
            ways.remove(at: index)
        } else if ways.count == Self.wayLimit {
            let place = ways.firstIndex { $0.route != current?.route } ?? 0
            ways.remove(at: place)
        }
        ways.append(way)
        if shouldTake(way) { current = way }
    }

    /// The newest nomination counts; of the ways that old peers nominate with each check the best one does, for as long as it is
    /// checked.
    private func shouldTake(_ way: Way) -> Bool {
        guard let current, current.route != way.route else { return true }
        let isSilent = way.lastCheck - current.lastCheck > Self.silenceLimit
        let isBetter = way.priority > current.priority || isSilent
        if way.nominates { return !current.nominates || isBetter }
        if current.wasNominated { return way.wasNominated && isSilent }
        return isBetter
    }

    private static let wayLimit = 16
    /// How long it goes on unasked (RFC 7675, section 5.1).
    private static let endLimit = Duration.seconds(30)
    /// Longer than the longest pause between two checks of a way in use (RFC 7675, section 5.1).
    private static let silenceLimit = Duration.seconds(8)
}
