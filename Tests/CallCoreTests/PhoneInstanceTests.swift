import Testing

@testable import CallCore

@Suite struct PhoneInstanceTests {
    @Test func `an instance is a UUID of random numbers, each another`() {
        let made = (0..<100).map { _ in PhoneInstance.random() }
        #expect(Set(made).count == 100)
        let form = /urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        for instance in made { #expect(instance.wholeMatch(of: form) != nil, "\(instance)") }
    }
}
