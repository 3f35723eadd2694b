import Synchronization

/// Reasons for which something is off: it is on when there is none.
///
/// Mute, hold and an agreed direction can each silence a call; none of them knows of the others, and none can be lost.
/// Thread: written by the control side, read by the media thread.
struct Switches: ~Copyable, Sendable {
    /// Why something is off.
    struct Reason: Sendable, Equatable {
        fileprivate let bit: UInt8

        /// The user muted it.
        static let muted = Reason(bit: 1)
        /// The call is held.
        static let held = Reason(bit: 2)
        /// Something else needs the sound.
        static let interrupted = Reason(bit: 8)
        /// What was agreed does not have it: the direction, or nothing was agreed yet.
        static let notAgreed = Reason(bit: 4)
        /// This side is not in the conference that the call is in.
        static let away = Reason(bit: 16)
    }

    private let bits = Atomic<UInt8>(0)

    /// Makes `reason` hold, or hold no longer.
    func set(_ reason: Reason, _ holds: Bool) {
        if holds {
            bits.bitwiseOr(reason.bit, ordering: .releasing)
        } else {
            bits.bitwiseAnd(~reason.bit, ordering: .releasing)
        }
    }

    /// Whether `reason` holds.
    func holds(_ reason: Reason) -> Bool { bits.load(ordering: .acquiring) & reason.bit != 0 }

    /// Whether no reason holds.
    var isOn: Bool { bits.load(ordering: .relaxed) == 0 }
}
