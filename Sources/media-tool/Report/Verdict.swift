/// How a stream sounded, in a word, and what that rests on.
struct Verdict {
    /// How good it was.
    enum Grade: String, Comparable, CaseIterable {
        case good, fair, poor, bad

        static func < (left: Grade, right: Grade) -> Bool { left.rank < right.rank }

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// How good it was; nil when nothing was played.
    let grade: Grade?

    /// The worse of what the mean opinion score and the gaps say; a score alone does not know where the gaps were.
    ///
    /// The scores are those at which ITU-T G.107, annex B, has users satisfied, some dissatisfied, and many.
    ///
    /// - Parameters:
    ///   - score: The mean opinion score, if there is one.
    ///   - gapShare: How much of the time audible gaps take, 0 to 1.
    ///   - isPlayed: Whether anything was played.
    init(score: Double?, gapShare: Double, isPlayed: Bool) {
        guard isPlayed else {
            grade = nil
            return
        }
        let byScore: Grade =
            switch score ?? 5 {
            case 4.03...: .good
            case 3.6..<4.03: .fair
            case 3.1..<3.6: .poor
            default: .bad
            }
        let byGaps: Grade =
            switch gapShare {
            case ..<0.005: .good
            case ..<0.02: .fair
            case ..<0.05: .poor
            default: .bad
            }
        grade = max(byScore, byGaps)
    }

    /// The word for it.
    var word: String {
        switch grade {
        case .good: "Good"
        case .fair: "Fair"
        case .poor: "Poor"
        case .bad: "Bad"
        case nil: "Nothing was heard"
        }
    }
}
