/// What tells packets with one sequence number apart: the number of times that numbers began anew, with the number.
///
/// Source: RFC 3711, section 3.3.1 and appendix A.
enum PacketIndex {
    /// The last one of a key (RFC 3711, section 9.2).
    static let last: UInt64 = 1 << 48 - 1

    /// The index of the packet `sequence`, as near to `highest` as there is one; nil when it would be before the first.
    static func nearest(_ sequence: UInt16, to highest: UInt64) -> UInt64? {
        let (cycles, number) = (highest >> 16, Int(highest & 0xFFFF))
        let index = cycles << 16 | UInt64(sequence)
        if number < 0x8000 {
            guard Int(sequence) - number > 0x8000 else { return index }
            return cycles == 0 ? nil : index - 0x1_0000
        }
        guard number - 0x8000 > Int(sequence) else { return index }
        return index + 0x1_0000
    }
}

/// Which of the last 128 packets have come.
///
/// Source: RFC 3711, section 3.3.2.
struct ReplayWindow {
    enum Finding {
        case new
        case replayed
        /// So old that nobody knows.
        case old
    }

    /// The newest that came; meaningless while `seen` is 0.
    private(set) var highest: UInt64 = 0
    /// Bit n: the one n before `highest`.
    private var seen: UInt128 = 0

    var isEmpty: Bool { seen == 0 }

    func judge(_ index: UInt64) -> Finding {
        guard !isEmpty, index <= highest else { return .new }
        let age = highest - index
        guard age < 128 else { return .old }
        return seen >> UInt128(age) & 1 == 0 ? .new : .replayed
    }

    /// Notes one that is new, and authentic.
    mutating func note(_ index: UInt64) {
        guard !isEmpty, index <= highest else {
            let step = isEmpty ? 128 : index - highest
            seen = step < 128 ? seen << UInt128(step) | 1 : 1
            highest = index
            return
        }
        seen |= 1 << UInt128(highest - index)
    }
}
