/// Decides from receiver reports whether in-band FEC pays.
///
/// On a clean path FEC takes bits from the sound (about 0.5 PESQ at 24 kbit/s), under loss it wins as much back. So
/// it is on from 1.5 % reported loss, and off again once three reports in a row show less than 0.5 %.
/// Pure: reports in, decisions out.
public struct FECPolicy: Sendable, BitwiseCopyable {
    /// What the encoder is to do.
    public struct Decision: Sendable, Hashable, BitwiseCopyable {
        /// Whether FEC is on.
        public let usesFEC: Bool
        /// The loss that FEC is to be strong against, in percent.
        public let expectedLossPercent: Int
    }

    private static let onFraction = 0.015
    private static let offFraction = 0.005
    private static let cleanReportsToTurnOff = 3
    /// At an expected loss of 5 % and less, libopus rather sends no FEC than a narrower band, so that at 24 kbit/s
    /// nothing could be recovered.
    private static let expectedLossRange = 10...30

    /// The decision that holds now.
    public private(set) var current = Decision(usesFEC: false, expectedLossPercent: 10)
    private var smoothedFraction = 0.0
    private var cleanReports = 0

    /// A policy that begins with FEC off.
    public init() {}

    /// Takes the share of packets that the other side lost since its last report (0 to 1), and answers a decision
    /// that differs from the one before, or nil.
    public mutating func update(fractionLost: Double) -> Decision? {
        smoothedFraction += (fractionLost - smoothedFraction) * 0.5
        cleanReports = fractionLost < Self.offFraction ? cleanReports + 1 : 0
        var usesFEC = current.usesFEC
        if fractionLost >= Self.onFraction { usesFEC = true }
        if cleanReports >= Self.cleanReportsToTurnOff { usesFEC = false }
        let measured = Int((smoothedFraction * 100).rounded())
        let percent = min(max(measured, Self.expectedLossRange.lowerBound), Self.expectedLossRange.upperBound)
        let next = Decision(usesFEC: usesFEC, expectedLossPercent: percent)
        guard next != current, next.usesFEC || current.usesFEC else { return nil }
        current = next
        return next
    }
}
