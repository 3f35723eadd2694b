@testable import MediaEngine
import Testing

@Suite struct CreditsTests {
    @Test func `places are taken all or none, and come back`() {
        let credits = Credits(5)
        #expect(credits.take(3))
        #expect(!credits.take(3))
        #expect(credits.take(2) && !credits.take(1))
        credits.give(4)
        #expect(credits.take(4) && !credits.take(1))
    }

    @Test func `reasons for silence do not know of each other`() {
        let switches = GainControl()
        #expect(switches.isOn)
        for reason in [Switches.Reason.muted, .held, .interrupted, .notAgreed] {
            switches.set(reason, true)
            switches.set(reason, true)
            #expect(!switches.isOn && switches.holds(reason))
        }
        switches.set(.held, false)
        #expect(!switches.holds(.held) && switches.holds(.muted) && !switches.isOn)
        for reason in [Switches.Reason.muted, .interrupted, .notAgreed] { switches.set(reason, false) }
        #expect(switches.isOn)
    }
}
