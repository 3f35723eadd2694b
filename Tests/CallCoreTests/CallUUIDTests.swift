import Testing

@testable import CallCore

@Suite struct CallUUIDTests {
    @Test func `it is a UUID of random numbers, each another, and is read as it is written`() {
        let made = (0..<100).map { _ in CallUUID() }
        #expect(Set(made).count == 100)
        let form = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        for uuid in made {
            #expect("\(uuid)".wholeMatch(of: form) != nil, "\(uuid)")
            #expect(CallUUID("\(uuid)") == uuid && CallUUID("\(uuid)".uppercased()) == uuid)
        }
    }

    @Test(arguments: [
        "", "0", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-80000-00000000000",
        "g0000000-0000-4000-8000-000000000000",
    ])
    func `what is none is not read`(text: String) { #expect(CallUUID(text) == nil) }
}
