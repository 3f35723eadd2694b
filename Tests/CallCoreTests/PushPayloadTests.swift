import CallCore
import Foundation
import Testing

@Suite struct PushPayloadTests {
    private func read(_ text: String) throws -> PushPayload {
        try JSONDecoder().decode(PushPayload.self, from: Data(text.utf8))
    }

    @Test func `each spelling is read, at either place`() throws {
        let expected = PushPayload(callID: "a", from: "sip:b@c", displayName: "Bob")
        for text in [
            #"{"call-id":"a","from-uri":"sip:b@c","display-name":"Bob"}"#,
            #"{"aps":{"call_id":"a","from_uri":"sip:b@c","display_name":"Bob","badge":1}}"#,
            #"{"call-id":"a","aps":{"call-id":"no","from-uri":"sip:b@c","display-name":"Bob"},"more":[1,{}]}"#,
        ] { #expect(try read(text) == expected, "\(text)") }
    }

    @Test func `what is no text, empty or too long is not there`() throws {
        let long = String(repeating: "x", count: 1025)
        #expect(
            try read(#"{"call-id":1,"from-uri":"","display-name":"\#(long)","aps":"no","from_uri":null}"#)
                == PushPayload()
        )
        #expect(throws: (any Error).self) { try read("[]") }
    }
}
