import SIP
import Testing

@testable import media_tool

/// The words by which a report tells how a call has ended.
@Suite struct CallEndTests {
    @Test(arguments: [
        (nil, "cancelled"), ("SIP;cause=603;text=\"Decline\"", "declinedElsewhere"),
        ("sip ; cause=486", "declinedElsewhere"),
        ("SIP;cause=200;text=\"Call completed elsewhere\"", "cancelled"), ("Q.850;cause=16", "cancelled"),
    ])
    func `a call that another phone has declined says so`(reason: String?, word: String) {
        #expect(CallEnd(.them, .cancelled, reason: reason).status == word)
    }

    @Test func `one that was taken back here is no other phone's`() {
        #expect(CallEnd(.us, .cancelled, reason: "SIP;cause=603").status == "cancelled")
    }
}
