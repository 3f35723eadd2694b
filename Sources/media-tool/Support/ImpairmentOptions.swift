import ArgumentParser
import MediaEngine

/// How bad the network is to be, in each direction.
struct ImpairmentOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Packets lost, 0 to 100 %.", valueName: "pct"))
    var loss = 0.0

    @Option(help: ArgumentHelp("Mean length of a run of lost packets, from 1 on.", valueName: "n"))
    var burst = 1.0

    @Option(help: ArgumentHelp("Delay of every packet, 0 to 10000 ms.", valueName: "ms"))
    var delay = 0.0

    @Option(help: ArgumentHelp("Delay on top, drawn evenly from 0 to this for each packet.", valueName: "ms"))
    var jitter = 0.0

    @Option(
        help: ArgumentHelp("Packets held back by 50 ms, so that others overtake them, 0 to 100 %.", valueName: "pct")
    )
    var reorder = 0.0

    @Option(help: ArgumentHelp("Packets that arrive twice, 0 to 100 %.", valueName: "pct"))
    var duplicate = 0.0

    @Option(help: ArgumentHelp("What draws each packet's fate: the same seed, the same fates.", valueName: "n"))
    var seed: UInt64 = 1

    func validate() throws {
        try Quantity.check("--loss", loss, in: 0...100, "%")
        try Quantity.check("--burst", burst, in: 1...1000)
        try Quantity.check("--delay", delay, in: 0...10_000, "ms")
        try Quantity.check("--jitter", jitter, in: 0...10_000, "ms")
        try Quantity.check("--reorder", reorder, in: 0...100, "%")
        try Quantity.check("--duplicate", duplicate, in: 0...100, "%")
    }

    var impairment: Impairment {
        var impairment = Impairment()
        impairment.lossPercent = loss
        impairment.burstLength = burst
        impairment.delay = .milliseconds(fraction: delay)
        impairment.jitter = .milliseconds(fraction: jitter)
        impairment.reorderPercent = reorder
        impairment.duplicatePercent = duplicate
        return impairment
    }

    /// The longest that a packet can be under way.
    var longestDelay: Duration {
        let impairment = impairment
        return impairment.delay + impairment.jitter + (reorder > 0 ? impairment.reorderDelay : .zero)
    }
}
