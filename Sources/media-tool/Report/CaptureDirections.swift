import MediaEngine

/// The directions of a call in a capture, heard one after the other.
enum CaptureDirections {
    /// Hears the stream that `selection` asks for, and the one that goes back.
    ///
    /// - Parameters:
    ///   - selection: What was asked for.
    ///   - path: The capture.
    ///   - content: What it holds.
    /// - Returns: One direction or two: where a stream was asked for, that one first; else the one that sounds worse.
    /// - Throws: What `CaptureReplay` throws.
    static func heard(
        _ selection: StreamSelection,
        _ path: String,
        _ content: InputContent
    ) async throws -> [ReportLeg] {
        let replay = try selection.replay(path, content: content)
        let there = try await replay.run(output: nil, trace: nil)
        // After a signal there is no time for another one.
        let opposite = there.endedAt == nil ? replay.opposite : nil
        var legs = [leg(there, of: replay)]
        if let opposite {
            do {
                let back = try selection.replay(path, content: content, opposite: opposite, of: replay)
                legs.append(leg(try await back.run(output: nil, trace: nil), of: back))
            } catch {
                let ssrc = CaptureReplay.hexadecimal(opposite.stream.ssrc)
                legs[0].notes.append("The other direction, SSRC \(ssrc), cannot be heard: \(error)")
            }
        }
        if selection.ssrc == nil, legs.count > 1, legs[1].isWorse(than: legs[0]) { legs.swapAt(0, 1) }
        if let rest = replay.rest(besides: opposite) { legs[0].notes.append(rest) }
        return legs
    }

    private static func leg(_ heard: CaptureReplay.Result, of replay: CaptureReplay) -> ReportLeg {
        ReportLeg(heard.trace, GapAnalysis(heard.trace), notes: replay.notes + heard.notes)
    }
}
