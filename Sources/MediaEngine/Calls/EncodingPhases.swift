import Synchronization

/// In which tick of its packets each call encodes.
///
/// Calls with packets of 20 ms that all encoded in the same tick would make every second one late; so each takes the
/// tick in which the fewest others do.
final class EncodingPhases: Sendable {
    /// The tick of one call, for as long as it is held.
    final class Phase: Sendable {
        /// Ticks in a packet.
        let count: Int
        /// Which of them, from 0.
        let tick: Int
        private let phases: EncodingPhases

        fileprivate init(_ phases: EncodingPhases, count: Int, tick: Int) {
            self.phases = phases
            self.count = count
            self.tick = tick
        }

        deinit {
            phases.users.withLock { $0[count]?[tick] -= 1 }
        }
    }

    /// Calls that encode in each tick of a packet, by the ticks of the packet.
    private let users = Mutex<[Int: [Int]]>([:])

    init() {}

    /// The tick in which the fewest calls with packets of `count` ticks encode.
    func take(of count: Int) -> Phase {
        let tick = users.withLock { users in
            var used = users[count] ?? Array(repeating: 0, count: count)
            var tick = 0
            for candidate in used.indices where used[candidate] < used[tick] { tick = candidate }
            used[tick] += 1
            users[count] = used
            return tick
        }
        return Phase(self, count: count, tick: tick)
    }

    /// That tick, in which a call encodes that could not choose.
    func hold(_ tick: Int, of count: Int) -> Phase {
        users.withLock { $0[count, default: Array(repeating: 0, count: count)][tick] += 1 }
        return Phase(self, count: count, tick: tick)
    }
}
