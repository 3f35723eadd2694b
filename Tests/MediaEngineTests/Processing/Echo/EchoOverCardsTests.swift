import Foundation
import TestSupport
import Testing

@testable import MediaEngine
import MediaEngineTesting

/// The echo canceller behind a card whose clock is not the graph's: the card's filter has to make it so.
@Suite struct EchoOverCardsTests {
    private static let format = AudioFormat(sampleRate: 16000)

    @Test(arguments: thorough([100.0, -100], quick: [-100]))
    func `a microphone whose clock is 100 ppm off leaves 30 dB`(ppm: Double) throws {
        let seconds = 24.0
        let far = try EchoRig.speech(seconds)
        let echo = Self.echo(of: far)
        let microphone = ClockworkCard(driftPPM: ppm) { Self.sample(echo, at: Double($0) / (1 + ppm / 1e6)) }
        let rig = try CardRig()
        let capture = rig.route(.capture, microphone, CardConfiguration(format: Self.format))
        var voice = VoiceProcessingConfiguration()
        voice.echoCancelling = .on
        let processor = try BuiltInVoiceProcessing().makeProcessor(voice, format: Self.format)
        let canceller = EchoCancellerFilter(processor, name: "built-in", format: Self.format)
        let player = SamplePlayerFilter(far, format: Self.format)
        let before = CollectingSink(format: Self.format)
        let after = CollectingSink(format: Self.format)
        var graph = Graph()
        try graph.connect(capture.filter, to: before)
        try graph.connect(capture.filter, to: canceller, input: 0)
        try graph.connect(player, to: canceller, input: 1)
        try graph.connect(canceller, to: after)
        rig.runner.install(try GraphPlan(graph))
        rig.driver.advance(by: .nanoseconds(Int64(seconds * 1e9)))
        let range = 16000 * 14..<16000 * 23
        let reduction =
            10 * log10((EchoRig.energy(before.collected[range]) + 1) / (EchoRig.energy(after.collected[range]) + 1))
        #expect(reduction >= 30, "\(reduction) dB")
        #expect(abs(try #require(capture.statistics.ppm) - ppm) < 5)
    }

    /// What a microphone hears of `far` in a room of 80 ms, 60 ms later.
    private static func echo(of far: [Int16]) -> [Double] {
        var room = AcousticPathConfiguration()
        room.delay = .milliseconds(60)
        let path = AcousticPath(room)
        var heard = [Int16](repeating: 0, count: far.count)
        var target = heard.mutableSpan
        let nobody: [Int16] = []
        path.process(played: far.span, near: nobody.span, into: &target)
        return heard.map(Double.init)
    }

    /// The value of `sound` between its samples, by a windowed sinc.
    private static func sample(_ sound: [Double], at position: Double) -> Int16 {
        let center = Int(position.rounded(.down))
        let fraction = position - Double(center)
        guard center >= 16, center + 17 < sound.count else { return 0 }
        var sum = 0.0
        for tap in -15...16 {
            let distance = Double(tap) - fraction
            let sinc = abs(distance) < 1e-9 ? 1 : sin(.pi * distance) / (.pi * distance)
            sum += sound[center + tap] * sinc * (0.5 + 0.5 * cos(.pi * distance / 17))
        }
        return Int16(clamping: Int(sum.rounded()))
    }
}
