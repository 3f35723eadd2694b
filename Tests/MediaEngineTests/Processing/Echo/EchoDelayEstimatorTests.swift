@testable import MediaEngine
import MediaEngineTesting
import Testing

@Suite struct EchoDelayEstimatorTests {
    /// Runs an estimator in a room; answers the delay in ms at each of `instants` (s).
    private func delays(
        _ room: AcousticPathConfiguration,
        near: [Int16] = [],
        at instants: [Double],
        change: (Double, (AcousticPath) -> Void)? = nil
    ) throws -> [Double?] {
        let far = try EchoRig.speech(instants.last ?? 0)
        let path = AcousticPath(room)
        let estimator = EchoDelayEstimator()
        var found: [Double?] = []
        for tick in 0..<far.count / 160 {
            if let change, Int(change.0 * 100) == tick { change.1(path) }
            let played = Array(far[tick * 160..<tick * 160 + 160])
            let voice = near.isEmpty ? [] : Array(near[tick * 160..<tick * 160 + 160])
            var heard = [Int16](repeating: 0, count: 160)
            var microphone = heard.mutableSpan
            path.process(played: played.span, near: voice.span, into: &microphone)
            estimator.process(captured: heard.span, played: played.span)
            if instants.contains(where: { Int($0 * 100) == tick + 1 }) {
                found.append(estimator.delay?.duration.milliseconds)
            }
        }
        return found
    }

    @Test(arguments: [16, 25, 60, 137, 250, 400, 490], [UInt64(1), 2])
    func `a delay is found within 2 s`(delay: Int, seed: UInt64) throws {
        var room = AcousticPathConfiguration()
        room.delay = .milliseconds(delay)
        room.seed = seed
        let found = try #require(try delays(room, at: [2.5])[0])
        #expect(abs(found - Double(delay)) <= 1.5)
    }

    @Test func `it is found though the near end speaks as loud`() throws {
        var room = AcousticPathConfiguration()
        room.delay = .milliseconds(90)
        let found = try #require(try delays(room, near: EchoRig.speech(5, from: 6), at: [5])[0])
        #expect(abs(found - 90) <= 1.5)
    }

    @Test func `a route change is followed within 3 s`() throws {
        let found = try delays(
            AcousticPathConfiguration(),
            at: [4, 7.5],
            change: (4.5, { $0.change(delay: .milliseconds(210)) })
        )
        let (before, after) = (try #require(found[0]), try #require(found[1]))
        #expect(abs(before - 40) <= 1.5)
        #expect(abs(after - 210) <= 1.5)
    }

    @Test func `without an echo there is no delay`() throws {
        var room = AcousticPathConfiguration()
        room.gain = .silence
        room.noise = Decibels(-40)
        #expect(try delays(room, at: [6])[0] == nil)
    }
}
