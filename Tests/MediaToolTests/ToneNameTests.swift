import ArgumentParser
import MediaEngine
import Testing

@testable import media_tool

struct ToneNameTests {
    @Test(arguments: [
        ("busy", CallProgressTone.busy), ("REORDER", .congestion), ("ringing", .ringback), ("Sit", .specialInformation),
        ("call-waiting", .callWaiting),
    ]) func `a tone has the names that people know it by, in any case`(name: String, tone: CallProgressTone) throws {
        let expected = try #require(try CallProgressTones.of(country: "US")[tone])
        #expect(try ToneSpec(named: name, country: "us") == expected)
    }

    @Test func `an unknown country or tone is answered with what is known`() {
        let country = #expect(throws: ValidationError.self) { try ToneSpec(named: "dial", country: "XX") }
        #expect(country?.message.contains("DE") == true && country?.message.contains("JP") == true)
        let tone = #expect(throws: ValidationError.self) { try ToneSpec(named: "bell", country: "FR") }
        #expect(tone?.message.contains("ringback") == true && tone?.message.contains("France") == true)
    }
}
