import CallBasics
import Testing

@testable import MediaEngine

@Suite struct XrunLossTests {
    @Test func `playback has been silent since what it held ran out`() {
        var loss = XrunLoss(.playback, sampleRate: 48_000)
        loss.note(level: 480, at: .zero + .seconds(1))
        #expect(loss.frameCount(at: .zero + .milliseconds(1100)) == 4800 - 480)
        #expect(loss.frameCount(at: .zero + .milliseconds(1005)) == 0)
    }

    @Test func `capture has lost what it held and what came since`() {
        var loss = XrunLoss(.capture, sampleRate: 48_000)
        loss.note(level: 480, at: .zero + .seconds(1))
        #expect(loss.frameCount(at: .zero + .milliseconds(1100)) == 4800 + 480)
    }

    @Test(arguments: [CardDirection.capture, .playback])
    func `a card that never moved has lost nothing, however long the machine has been up`(direction: CardDirection) {
        let loss = XrunLoss(direction, sampleRate: 48_000)
        #expect(loss.frameCount(at: .zero + .seconds(54 * 3600)) == 0)
    }

    @Test(arguments: [CardDirection.capture, .playback])
    func `no time between two moves is too long`(direction: CardDirection) {
        // 2^63 ns / 48,000 are 53 h and a bit.
        var loss = XrunLoss(direction, sampleRate: 48_000)
        loss.note(level: 0, at: .zero)
        #expect(loss.frameCount(at: .zero + .seconds(54 * 3600)) == 54 * 3600 * 48_000)
        #expect(loss.frameCount(at: .zero + .seconds(1000 * 86_400)) == 1000 * 86_400 * 48_000)
        // A clock that was set back costs nothing.
        loss.note(level: 0, at: .zero + .seconds(10))
        #expect(loss.frameCount(at: .zero) == 0)
    }
}
