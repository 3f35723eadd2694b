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
        let control = SendingControl()
        #expect(control.isOn)
        for reason in [Switches.Reason.muted, .held, .interrupted, .notAgreed] {
            control.set(reason, true)
            control.set(reason, true)
            #expect(!control.isOn && control.holds(reason))
        }
        control.set(.held, false)
        #expect(!control.holds(.held) && control.holds(.muted) && !control.isOn)
        for reason in [Switches.Reason.muted, .interrupted, .notAgreed] { control.set(reason, false) }
        #expect(control.isOn)
    }
}
