import Foundation
import MediaEngine
import SDP
import TestSupport
import Testing

/// What a call in virtual time says of its quality.
@Suite struct CallQualityTests {
    private func run(
        codec: String = "PCMU",
        seconds: Int = thorough(40, quick: 20),
        loss: Double = 0,
        jitter: Duration = .zero,
        seed: UInt64 = 1,
        configure: (inout CallConfiguration) -> Void = { _ in }
    ) async throws -> CallReport {
        let engine = try CallEngine(.virtual(seed: seed))
        let (left, right) = MemoryLink.pair()
        let format = try engine.registry.codec(named: codec).description.format
        var a = CallConfiguration(network: .link(left, local: left.localAddress))
        a.name = "A"
        a.agreement.remote = right.localAddress
        a.agreement.codec = AgreedCodec(codec)
        a.source = .samples(chirps(Double(seconds), format), format)
        a.sink = .none
        a.impairment.delay = .milliseconds(40)
        configure(&a)
        var b = a
        b.name = "B"
        b.network = .link(right, local: right.localAddress)
        b.agreement.remote = left.localAddress
        b.impairment.lossPercent = loss
        b.impairment.jitter = jitter
        let calls = try await engine.makeCalls([a, b])
        try engine.advance(by: .seconds(seconds))
        return CallReport(
            codec: codec,
            mode: .virtual,
            seconds: Double(seconds),
            legs: [calls[0].report(hearing: calls[1]), calls[1].report()],
            ticks: CallReport.Ticks(engine.tickStatistics)
        )
    }

    @Test(arguments: thorough(["PCMU", "opus", "G722"], quick: ["G722"])) func `a clean call is near the best there is`(
        codec: String
    ) async throws {
        for leg in try await run(codec: codec).legs {
            let quality = leg.quality
            let isWideband = codec != "PCMU"
            let (best, rating) = codec == "PCMU" ? (4.41, 93.2) : codec == "opus" ? (4.42, 121) : (4.34, 116)
            #expect(abs(try #require(quality.mosListening) - best) < 0.015)
            #expect(quality.scale == (isWideband ? .wideband : .narrowband))
            // Of conversing, with the delay.
            #expect((rating - 6...rating).contains(try #require(quality.rFactor)))
            #expect(try #require(quality.remote?.rFactor) <= 94)
            #expect(try #require(quality.mosConversational) > 4.1)
            #expect(quality.lossPercent == 0 && quality.discardPercent == 0 && quality.burstMs == 0)
            #expect(quality.burstLossPercent == 0 && quality.gapLossPercent == 0)
            #expect(quality.implausibleReports == 0)
        }
    }

    @Test func `the delay that is estimated is near the one that is measured`() async throws {
        let report = try await run()
        let measured = try #require(report.legs[0].mouthToEarMs)
        #expect(report.legs[0].quality.oneWayDelayMs == measured && report.legs[1].mouthToEarMs == nil)
        let estimated = try #require(report.legs[1].quality.oneWayDelayMs)
        #expect(abs(estimated - measured) < 25, "estimated \(estimated), measured \(measured)")
    }

    @Test func `5 % loss shows, in bursts and gaps, and costs quality, here and by the other side's account`()
        async throws
    {
        let clean = try await run().legs[1].quality
        let report = try await run(seconds: 60, loss: 5)
        let lossy = report.legs[1].quality
        #expect((3.5...6.5).contains(lossy.lossPercent) && lossy.discardPercent == 0)
        #expect(lossy.gapLossPercent < lossy.lossPercent && lossy.lossPercent < lossy.burstLossPercent)
        #expect((5...25).contains(lossy.burstLossPercent) && (0.5...5).contains(lossy.gapLossPercent))
        #expect(lossy.burstMs >= 40 && lossy.gapMs > 320)
        #expect(try #require(lossy.mosListening) < #require(clean.mosListening) - 0.3)
        #expect(try #require(lossy.rFactor) < #require(clean.rFactor) - 8)
        let told = try #require(report.legs[0].quality.remote)
        #expect(abs(told.lossPercent - lossy.lossPercent) < 2)
        #expect(try #require(told.mosListening) < 4.2)
        #expect(try #require(report.legs[1].quality.remote?.mosListening) == 4.4)
        #expect((80...100).contains(try #require(told.roundTripMs)))
        #expect(told.endSystemDelayMs >= 30 && told.bufferDelayMs >= 10)
    }

    @Test func `packets that come too late count as discarded`() async throws {
        let late = try await run(seconds: 40, jitter: .milliseconds(150)) {
            $0.stream.playoutDelay = .fixed(.milliseconds(20))
        }
        let leg = late.legs[1]
        #expect(leg.received.late > 20 && leg.quality.lossPercent == 0)
        let share = Double(leg.received.late) / Double(leg.received.packets) * 100
        #expect(abs(leg.quality.discardPercent - share) < 1)
        #expect(try #require(leg.quality.mosListening) < 4.35)
    }

    @Test func `what FEC rebuilds is not lost`() async throws {
        let with = try await run(codec: "opus", seconds: 30, loss: 8) { $0.stream.fec = .on }.legs[1]
        let without = try await run(codec: "opus", seconds: 30, loss: 8) { $0.stream.fec = .off }.legs[1]
        #expect(with.received.fecRecovered > 50)
        let expected = Double(with.received.lost - with.received.fecRecovered) / Double(with.received.packets) * 100
        #expect(abs(with.quality.lossPercent - expected) < 1)
        #expect(try #require(with.quality.mosListening) > #require(without.quality.mosListening) + 0.3)
    }

    @Test(arguments: thorough(["PCMU", "opus", "G722"], quick: ["PCMU"]), [0.0, 20])
    func `each side is told how loud it is, lost packets or not`(
        codec: String,
        loss: Double
    ) async throws {
        let report = try await run(codec: codec, seconds: 24, loss: loss) { call in
            // Again and again a second of silence, then two of 1 kHz at -10 dBm0.
            let format = AudioFormat(sampleRate: 8000)
            let amplitude = 32768 * Decibels(Decibels.zeroDBm0.value - 10).amplitude
            let samples = (0..<192_000).map { (index: Int) -> Int16 in
                if index % 24_000 < 8000 { return 0 }
                let phase = Double(index % 8) * Double.pi / 4 + 0.3
                return Int16(amplitude * sin(phase))
            }
            call.source = .samples(samples, format)
        }
        for leg in report.legs {
            let told = try #require(leg.quality.remote)
            #expect(try (-11 ... -9).contains(#require(told.signalLevel)))
            // What a lost state leaves of a tone may reach into the pause.
            #expect(try #require(told.noiseLevel) < (loss > 0 ? -35 : -60))
        }
        #expect(report.openMetrics.contains("media_remote_speech_level_dbm0{leg=\"A\""))
    }

    @Test func `who only listens knows the round trip`() async throws {
        let engine = try CallEngine(.virtual())
        let (left, right) = MemoryLink.pair()
        let format = AudioFormat(sampleRate: 8000)
        var speaker = CallConfiguration(network: .link(left, local: left.localAddress))
        speaker.agreement.remote = right.localAddress
        speaker.agreement.codec = "PCMU"
        speaker.source = .samples(chirps(29, format), format)
        speaker.sink = .none
        speaker.impairment.delay = .milliseconds(50)
        var listener = speaker
        listener.network = .link(right, local: right.localAddress)
        listener.agreement.remote = left.localAddress
        listener.source = .silence
        listener.agreement.direction = .receiveOnly
        let calls = try await engine.makeCalls([speaker, listener])
        try engine.advance(by: .seconds(30))
        let report = calls[1].report()
        #expect(report.sent.packets <= 1)
        #expect(calls[0].report().quality.remote?.signalLevel != nil && report.quality.remote?.signalLevel == nil)
        #expect(abs(try #require(report.rtcp.roundTripMs) - 100) < 20)
        #expect(report.quality.oneWayDelayMs != nil && report.quality.mosConversational != nil)
    }

    @Test func `the same seed gives the same report, byte for byte`() async throws {
        let first = try await run(
            codec: "opus",
            seconds: thorough(20, quick: 8),
            loss: 5,
            jitter: .milliseconds(40),
            seed: 4
        )
        let second = try await run(
            codec: "opus",
            seconds: thorough(20, quick: 8),
            loss: 5,
            jitter: .milliseconds(40),
            seed: 4
        )
        #expect(first.openMetrics == second.openMetrics && first.table == second.table && first == second)
        let other = try await run(
            codec: "opus",
            seconds: thorough(20, quick: 8),
            loss: 5,
            jitter: .milliseconds(40),
            seed: 5
        )
        #expect(first.openMetrics != other.openMetrics)
    }

    @Test func `the table and the metrics tell the estimate`() async throws {
        var report = try await run(seconds: 20, loss: 5)
        for title in ["R factor, estimated", "MOS listening / conversing", "loss in bursts / gaps"] {
            #expect(report.table.contains(title))
        }
        report.legs[1].received.refused.otherAddress = 50
        report.legs[1].received.refused.unnamedHost = 40
        report.legs[1].received.refused.formerSource = 30
        report.legs[1].received.refused.otherControl = 20
        report.legs[1].received.refused.otherProtocol = 10
        report.legs[1].received.socketDrops = 60
        let refusals = [
            "other_address": 50, "unnamed_host": 40, "former_source": 30, "other_control": 20, "other_protocol": 10,
        ]
        for (reason, count) in refusals {
            let sample = "media_refused_packets_total{leg=\"B\",codec=\"PCMU\",reason=\"\(reason)\"} \(count)\n"
            #expect(report.openMetrics.contains(sample), "\(reason)")
        }
        #expect(report.openMetrics.contains("media_socket_dropped_datagrams_total{leg=\"B\",codec=\"PCMU\"} 60\n"))
        #expect(report.table.contains("120 / 20") && !report.table.contains("dropped by the socket"))
        report.mode = .udp
        #expect(report.table.contains("dropped by the socket") && report.table.contains("level sent"))
        report.mode = .replay
        let ofSending = ["sent ", "peer", "round trip", "loss protection", "mouth to ear", "socket", "unreachable"]
        #expect(ofSending.allSatisfy { !report.table.contains($0) } && report.table.contains("level heard"))
        let text = report.openMetrics
        try OpenMetricsGrammar.check(text)
        try PrometheusGrammar.check(report.prometheusText)
        #expect(report.prometheusText.contains("\n# TYPE media_lost_packets_total counter\nmedia_lost_packets_total{"))
        let score = try #require(report.legs[1].quality.mosListening)
        #expect(text.contains("media_mos_listening{leg=\"B\",codec=\"PCMU\"} \(score)\n"))
        #expect(text.contains("media_lost_packets_total{leg=\"B\",codec=\"PCMU\"} \(report.legs[1].received.lost)\n"))
        let target = try #require(report.legs[1].targetDelayMs)
        #expect(text.contains("media_playout_delay_target_seconds{leg=\"B\",codec=\"PCMU\"} \(target / 1000)\n"))
        let stretched = report.legs[1].stretchedMs
        #expect(stretched > 0)
        #expect(text.contains("media_stretched_seconds_total{leg=\"B\",codec=\"PCMU\"} \(stretched / 1000)\n"))
        // Nobody measured from mouth to ear at B.
        #expect(!text.contains("media_mouth_to_ear_seconds{leg=\"B\""))
        #expect(text.contains("media_mouth_to_ear_seconds{leg=\"A\""))
    }
}
