@testable import AgentSockets
import CMeasure
import EngineBenchmarks
import Foundation
@testable import MediaEngine

/// What a message of Twilio's format costs, and the canceller of a line's echo.
enum AgentMessages {
    static func measure(_ options: Options) throws -> [Figure] {
        var generator = SystemRandomNumberGenerator()
        var codec = MediaStreamsCodec(&generator)
        let speech = (0..<160).map { Int16(truncatingIfNeeded: $0 &* 7919) }
        let sent = best(options) { _ = codec.encode(.sound(speech)) }
        // 40 ms, as Pipecat has them.
        let payload = Data((0..<320).map { UInt8(truncatingIfNeeded: $0 &* 31) }).base64EncodedString()
        let text = #"{"event":"media","streamSid":"MZ1","media":{"payload":"\#(payload)"}}"#
        let media = AgentFrame.text(Array(text.utf8))
        let received = best(options) { _ = codec.decode(media) }
        guard codec.malformedCount == 0 else { throw Options.Wrong(description: "messages were not understood") }
        return [
            Figure("agents: a message to an agent, 20 ms of sound", sent, "us", .atMost(30)),
            Figure("agents: a message of an agent, 40 ms of sound", received, "us", .atMost(30)),
            Figure("agents: cancelling the echo of a line, 20 ms", cancelling(options), "us"),
        ]
    }

    /// Takes the echo of what is played out of what is heard, as a line with a strong one does.
    private static func cancelling(_ options: Options) -> Double {
        let canceller = EchoCanceller(tail: .milliseconds(50), suppressesResidual: false)
        let played = (0..<160).map { Int16(truncatingIfNeeded: $0 &* 7919) / 4 }
        let heard = played.map { $0 / 5 }
        var left = [Int16](repeating: 0, count: 160)
        return best(options) {
            var target = left.mutableSpan
            canceller.process(captured: heard.span, reference: played.span, into: &target)
        }
    }

    /// CPU of one run, in us: the mean of the best of several rounds.
    private static func best(_ options: Options, _ body: () -> Void) -> Double {
        var best = Double.infinity
        for _ in 0..<4 * options.repetitions {
            let (start, count) = (measure_thread_cpu(), 2000)
            for _ in 0..<count { body() }
            best = min(best, Double(measure_thread_cpu() - start) / Double(count) / 1000)
        }
        return best
    }
}
