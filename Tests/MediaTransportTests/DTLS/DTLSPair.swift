import SDP
import TestSupport
import Testing

@testable import MediaTransport

/// Two associations, and the network between them.
final class DTLSPair {
    var active: DTLSAssociation
    var passive: DTLSAssociation
    /// All that was sent and where to, in order.
    private(set) var sent: [(to: DTLSRole, datagram: [UInt8])] = []

    /// Two that know each other's fingerprints, unless told otherwise.
    init(
        _ one: DTLSIdentity = DTLSPair.one,
        _ other: DTLSIdentity = DTLSPair.other,
        activeExpects: [Fingerprint]? = nil,
        passiveExpects: [Fingerprint]? = nil
    ) throws {
        active = try DTLSAssociation(one, role: .active, fingerprints: activeExpects ?? [other.fingerprint])
        passive = try DTLSAssociation(other, role: .passive, fingerprints: passiveExpects ?? [one.fingerprint])
    }

    /// Carries datagrams until nobody sends one; `network` answers what arrives in place of those sent at once.
    func exchange(_ network: ([[UInt8]], DTLSRole) -> [[UInt8]] = { datagrams, _ in datagrams }) {
        while true {
            let (toPassive, toActive) = (active.takeDatagrams(), passive.takeDatagrams())
            guard !toPassive.isEmpty || !toActive.isEmpty else { return }
            sent += toPassive.map { (.passive, $0) } + toActive.map { (.active, $0) }
            for datagram in network(toPassive, .passive) { passive.receive(datagram.span) }
            for datagram in network(toActive, .active) { active.receive(datagram.span) }
        }
    }

    /// Carries datagrams, and awaits the timers, until both are connected or one has ended.
    func exchangeInRealTime(_ network: ([[UInt8]], DTLSRole) -> [[UInt8]]) {
        let end = ContinuousClock.now + .seconds(15)
        while .now < end {
            exchange(network)
            if states.active.keys != nil, states.passive.keys != nil { return }
            if states.active.isOver || states.passive.isOver { return }
            guard let timeout = timeouts.compactMap(\.self).min() else { return }
            pass(timeout)
            active.handleTimeout()
            passive.handleTimeout()
        }
    }

    var states: (active: DTLSAssociation.State, passive: DTLSAssociation.State) { (active.state, passive.state) }

    var timeouts: [Duration?] { [active.timeout, passive.timeout] }

    /// Whether both are connected, with keys that cross.
    var isConnected: Bool {
        guard let one = active.state.keys, let other = passive.state.keys else { return false }
        return one.suite == other.suite && one.sending.equals(other.receiving) && one.receiving.equals(other.sending)
            && !one.sending.equals(one.receiving)
    }

    static let one = identity()
    static let other = identity()

    private static func identity() -> DTLSIdentity {
        do { return try DTLSIdentity() } catch { preconditionFailure("\(error)") }
    }
}

extension DTLSAssociation.State {
    var keys: DTLSKeys? {
        guard case .connected(let keys) = self else { return nil }
        return keys
    }

    var error: DTLSError? {
        guard case .failed(let error) = self else { return nil }
        return error
    }

    var isClosed: Bool {
        guard case .closed = self else { return false }
        return true
    }

    var isConnecting: Bool {
        guard case .connecting = self else { return false }
        return true
    }

    /// Failed or closed.
    var isOver: Bool { error != nil || isClosed }
}

/// The records in a datagram, each with its header of 13 bytes.
func records(of datagram: [UInt8]) -> [[UInt8]] {
    var (records, rest) = ([[UInt8]](), datagram[...])
    while rest.count >= 13 {
        let start = rest.startIndex
        let count = 13 + Int(rest[start + 11]) << 8 + Int(rest[start + 12])
        records.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
    }
    return records
}
