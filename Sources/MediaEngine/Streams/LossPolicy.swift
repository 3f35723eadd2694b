package import CallBasics
package import RTP

/// Decides from what the other side reports how the stream is to be protected against loss.
///
/// - In-band FEC costs about 0.5 PESQ on a clean path, recovers only the last packet of a run, and that does the less
///   the more before it are missing. So what counts is loss divided by the square of the mean run: it is on from 1.5 %,
///   and off again once three reports in a row show less than 0.5 %.
/// - RED takes the place of FEC from 15 % smoothed loss, and leaves it to FEC below 10 %. Its copies share one and a half
///   times the configured bitrate, headers included; the total never exceeds that. With 20 ms of audio in a packet this
///   is a third more on the wire. Two generations, or one where two would leave less than 10 kbit/s to each.
/// - A codec of one rate without FEC repeats one packet from 3 %, which doubles its rate, until there is less than 1 %.
///
/// More protection begins at once; less of it comes 10 s after the last change at the earliest. The length of packets
/// never changes.
/// Pure: reports and times in, decisions out. <doc:LossProtection> has the measurements behind the numbers.
package struct LossPolicy: Sendable {
    /// What encoder and peer can do.
    package struct Abilities: Sendable, Hashable {
        /// Whether the codec has in-band FEC that the peer takes.
        package var allowsFEC: Bool
        /// Whether RED was agreed with the peer.
        package var allowsRED: Bool
        /// The configured bitrate, in bit/s; nil for a codec of one rate.
        package var bitrate: Int?
        /// Audio in each packet.
        package var ptime: Duration

        /// Abilities with the given parts.
        package init(allowsFEC: Bool, allowsRED: Bool, bitrate: Int?, ptime: Duration = .milliseconds(20)) {
            self.allowsFEC = allowsFEC
            self.allowsRED = allowsRED
            self.bitrate = bitrate
            self.ptime = ptime
        }
    }

    /// What is to be done, and why.
    package struct Decision: Sendable, Hashable {
        /// How to protect what is sent from now on.
        package let protection: LossProtection
        /// Why, for people, in one line.
        package let reason: String
        /// Whether the mode is another than before; else only its numbers are.
        package let isNewMode: Bool
    }

    /// By what RED may exceed the configured bitrate, as a factor of it, headers of the blocks included.
    package static let budgetFactor = 1.5
    /// The least bitrate of one generation of RED, in bit/s.
    package static let minimumGenerationBitrate = 10_000
    /// How long a mode is kept before a weaker one may take its place.
    package static let minimumDwell = Duration.seconds(10)

    private static let reparableToTurnOn = 0.015
    private static let reparableToTurnOff = 0.005
    private static let cleanReportsToTurnOff = 3
    private static let smoothedForRED = 0.15
    private static let smoothedAgainstRED = 0.10
    private static let fixedRateToTurnOn = 0.03
    private static let fixedRateToTurnOff = 0.01
    /// What a report's runs still count when the next report comes: a few runs tell little of their mean.
    private static let runMemory = 0.75
    /// At an expected loss of 5 % and less, libopus rather sends no FEC than a narrower band, so that at 24 kbit/s
    /// nothing could be recovered.
    private static let expectedLossRange = 10...30

    /// The protection that holds now.
    package private(set) var current = LossProtection.none
    /// Why it holds.
    package private(set) var reason = "no loss reported yet"
    /// Times that the mode changed.
    package private(set) var changeCount = 0

    private let abilities: Abilities
    private let redundancy: LossProtection?
    private var smoothedFraction = 0.0
    private var runCount = 0.0
    private var lostInRuns = 0.0
    private var cleanReports = 0
    private var lastChange: MediaTime?

    /// A policy that begins without protection.
    package init(_ abilities: Abilities) {
        self.abilities = abilities
        redundancy = Self.redundancy(abilities)
    }

    /// Takes a report of the other side.
    ///
    /// - Parameters:
    ///   - fractionLost: The share of packets lost since the report before, 0 to 1.
    ///   - runs: The runs of losses in that time; nil where the other side does not tell them. Until it does, losses are
    ///     taken for scattered.
    ///   - now: When the report came.
    /// - Returns: A decision that differs from the one before, or nil.
    package mutating func update(fractionLost: Double, runs: LossRuns? = nil, at now: MediaTime) -> Decision? {
        let fraction = min(max(fractionLost.isFinite ? fractionLost : 0, 0), 1)
        if let runs {
            runCount = runCount * Self.runMemory + Double(runs.runCount)
            lostInRuns = lostInRuns * Self.runMemory + Double(runs.lostCount)
        }
        smoothedFraction += (fraction - smoothedFraction) * 0.5
        let isClean =
            abilities.allowsFEC
            ? reparable(fraction) < Self.reparableToTurnOff : fraction < Self.fixedRateToTurnOff
        cleanReports = isClean ? cleanReports + 1 : 0
        let next = wanted(fraction)
        guard next != current else {
            if current == .none, fraction > 0 { reason = explanationOfNone(fraction) }
            return nil
        }
        let isNewMode = next.mode != current.mode
        if isNewMode {
            let isSettled = lastChange.map { now - $0 >= Self.minimumDwell } ?? true
            guard isSettled || next.mode.strength > current.mode.strength else { return nil }
            lastChange = now
            changeCount += 1
        }
        reason = explanation(of: next, fraction)
        current = next
        return Decision(protection: next, reason: reason, isNewMode: isNewMode)
    }

    /// How many packets are lost in a row on average, over the last reports; nil before any were told.
    private var meanRun: Double? { runCount > 0 ? max(lostInRuns / runCount, 1) : nil }

    /// The loss that FEC does good against, of a loss of `fraction`.
    private func reparable(_ fraction: Double) -> Double {
        let run = meanRun ?? 1
        return fraction / (run * run)
    }

    private func wanted(_ fraction: Double) -> LossProtection {
        if let redundancy {
            let hasRED = current.mode == .red
            guard abilities.allowsFEC else {
                if fraction >= Self.fixedRateToTurnOn { return redundancy }
                return hasRED && cleanReports < Self.cleanReportsToTurnOff ? redundancy : .none
            }
            if smoothedFraction >= (hasRED ? Self.smoothedAgainstRED : Self.smoothedForRED) { return redundancy }
        }
        guard abilities.allowsFEC, cleanReports < Self.cleanReportsToTurnOff else { return .none }
        switch current.mode {
        case .none: guard reparable(fraction) >= Self.reparableToTurnOn else { return .none }
        case .fec: break
        case .red: guard reparable(smoothedFraction) >= Self.reparableToTurnOn else { return .none }
        }
        let measured = Int((smoothedFraction * 100).rounded())
        let percent = min(max(measured, Self.expectedLossRange.lowerBound), Self.expectedLossRange.upperBound)
        return .inBandFEC(expectedLossPercent: percent)
    }

    /// The most redundancy that the budget allows; nil when it allows none, or the peer has not agreed.
    private static func redundancy(_ abilities: Abilities) -> LossProtection? {
        guard abilities.allowsRED else { return nil }
        guard let bitrate = abilities.bitrate else { return .redundancy(generations: 1, bitrate: nil) }
        let packetsPerSecond = 1000 / max(abilities.ptime.milliseconds, 1)
        for generations in [2, 1] {
            let headers =
                generations * REDPayload.redundantHeaderByteCount + REDPayload.primaryHeaderByteCount
            let budget = Double(bitrate) * budgetFactor - Double(headers * 8) * packetsPerSecond
            let each = Int(budget) / (generations + 1)
            if each >= minimumGenerationBitrate { return .redundancy(generations: generations, bitrate: each) }
        }
        return nil
    }

    /// Why nothing is done, though there is loss.
    private func explanationOfNone(_ fraction: Double) -> String {
        let told = "\(Self.percent(fraction)) loss reported\(runs)"
        guard abilities.allowsFEC || redundancy != nil else {
            return "\(told): neither FEC nor RED is to be had"
        }
        guard abilities.allowsFEC else { return "\(told): too little for RED" }
        let isScattered = fraction < Self.reparableToTurnOn
        return told + (isScattered ? ": too little for FEC" : ": FEC would cost more than it repairs of such runs")
    }

    private static func percent(_ share: Double) -> String { "\((share * 1000).rounded() / 10) %" }

    private var runs: String {
        guard let meanRun else { return "" }
        return meanRun < 1.05 ? ", scattered" : ", \((meanRun * 10).rounded() / 10) packets in a row"
    }

    private func explanation(of next: LossProtection, _ fraction: Double) -> String {
        let percent = Self.percent
        switch next {
        case .none where cleanReports < Self.cleanReportsToTurnOff:
            return "loss is down to \(percent(smoothedFraction))\(runs): FEC would cost more than it repairs"
        case .none:
            return "\(Self.cleanReportsToTurnOff) reports with little or no loss to repair, the last with "
                + "\(percent(fraction))\(fraction > 0 ? runs : "")"
        case .inBandFEC(let expected):
            let against = "in-band FEC made for \(expected) %"
            return current.mode == .red
                ? "loss is down to \(percent(smoothedFraction))\(runs): \(against) costs less than RED"
                : "\(percent(fraction)) loss reported\(runs): \(against)"
        case .redundancy(let generations, let bitrate):
            let copies = generations == 1 ? "one copy" : "\(generations) copies"
            let rate = bitrate.map { "at \(Double($0 / 100) / 10) kbit/s each" } ?? "at twice the codec's rate"
            let loss = abilities.allowsFEC ? smoothedFraction : fraction
            return "\(percent(loss)) loss reported\(runs): RED with \(copies) of each packet \(rate)"
        }
    }
}
