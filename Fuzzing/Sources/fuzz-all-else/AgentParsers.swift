import FuzzDriver

@testable import AgentSockets

/// What voice agents send.
enum AgentParsers {
    /// The first byte says of which format the rest is, in pieces: what was said is bounded by what has come.
    static func messages(_ bytes: Span<UInt8>) throws {
        let all = array(bytes)
        guard let kind = all.first else { return }
        var generator = SystemRandomNumberGenerator()
        guard let socket = AudioSocketCodec(sampleRate: 8000, identifier: 1) else { return }
        let formats = AgentFormat.allCases
        let format = Int(kind) % (formats.count + 1)
        var codec: any AgentCodec = socket
        if format < formats.count {
            codec = formats[format].codec(sampleRate: formats[format].sampleRates[0], &generator)
        }
        // The fourth bit says whether frames are binary, where there are both.
        let isBinary = kind & 8 > 0 || format == formats.count
        var queue = SpeechQueue(sampleRate: 8000)
        var rest = all.dropFirst()
        while let size = rest.first {
            let piece = Array(rest.dropFirst().prefix(Int(size)))
            rest = rest.dropFirst(1 + piece.count)
            for request in codec.decode(isBinary ? .binary(piece) : .text(piece)) {
                switch request {
                case .sound(let samples):
                    // With a byte that was left of the piece before.
                    precondition(samples.count <= piece.count + 1)
                    precondition(queue.add(samples) == 0)
                case .mark(let name): precondition(!queue.add(mark: name) || queue.waitingMarkCount > 0)
                case .clear:
                    _ = queue.clear()
                    precondition(queue.waitingFrameCount == 0 && queue.waitingMarkCount == 0)
                case .press(let keys): precondition(1...64 ~= keys.utf8.count)
                case .transfer(let target): precondition(1...1024 ~= target.utf8.count)
                case .hold, .pause, .hangUp: break
                }
            }
            queue.tick(queued: 0)
            queue.pass(write: { min($0.count, 100) }, mark: { _, _ in size % 3 > 0 })
            precondition(queue.waitingFrameCount >= 0 && queue.waitingMarkCount >= 0)
        }
    }
}
