@testable import AgentSockets

/// What voice agents send.
enum AgentParsers {
    /// The first byte says of which format the rest is, in pieces: what was said is bounded by what has come.
    static func messages(_ bytes: Span<UInt8>) throws {
        let all = Parsers.array(bytes)
        guard let kind = all.first else { return }
        var generator = SystemRandomNumberGenerator()
        var twilio = TwilioCodec(&generator)
        guard var socket = AudioSocketCodec(sampleRate: 8000, identifier: 1) else { return }
        var queue = SpeechQueue(sampleRate: 8000)
        var rest = all.dropFirst()
        while let size = rest.first {
            let piece = Array(rest.dropFirst().prefix(Int(size)))
            rest = rest.dropFirst(1 + piece.count)
            let requests = kind % 2 == 0 ? twilio.decode(.text(piece)) : socket.decode(.binary(piece))
            for request in requests {
                switch request {
                case .sound(let samples):
                    precondition(samples.count <= piece.count)
                    precondition(queue.add(samples) == 0)
                case .mark(let name): precondition(!queue.add(mark: name) || queue.waitingMarkCount > 0)
                case .clear:
                    _ = queue.clear()
                    precondition(queue.waitingFrameCount == 0 && queue.waitingMarkCount == 0)
                case .hangUp: break
                }
            }
            queue.tick(queued: 0)
            queue.pass(write: { min($0.count, 100) }, mark: { _ in size % 3 > 0 })
            precondition(queue.waitingFrameCount >= 0 && queue.waitingMarkCount >= 0)
        }
    }
}
