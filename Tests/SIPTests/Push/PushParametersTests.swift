import Foundation
import Testing

@testable import SIP

@Suite struct PushParametersTests {
    @Test func `each case is read, or refused, as it has to be`() throws {
        let cases = try #require(try Fixture.json("pn-params/cases.json") as? [[String: Any]])
        #expect(cases.count == 12)
        for item in cases {
            let name = item["id"] as? String ?? ""
            let contact = try NameAddress(parsing: Bytes(item["contact"] as? String ?? ""))
            let expected = try #require(item["expect"] as? [String: Any])
            guard expected["error"] == nil else {
                #expect(throws: SIPError.self, "\(name)") { try PushParameters(of: contact) }
                continue
            }
            let push = try #require(try PushParameters(of: contact), "\(name)")
            #expect(push.isQuery == (expected["query"] as? Bool ?? false), "\(name)")
            if let provider = expected["provider"] as? String { #expect(push.provider == provider, "\(name)") }
            if let team = expected["team"] as? String { #expect(push.team == team, "\(name)") }
            if let bundle = expected["bundle"] as? String { #expect(push.bundle == bundle, "\(name)") }
            if let services = expected["services"] as? [String] { #expect(push.services.map(\.rawValue) == services) }
            if let tokens = expected["tokens"] as? [String: String] {
                let read = push.tokens.map { ($0.key.rawValue, $0.value.bytes.text) }
                #expect(Dictionary(uniqueKeysWithValues: read) == tokens, "\(name)")
            }
            if let token = expected["prid_decoded"] as? String { #expect(push.token?.bytes.text == token, "\(name)") }
            for (key, value) in expected["extras"] as? [String: String] ?? [:] {
                #expect(push.others[key] == value, "\(name)")
            }
        }
    }

    @Test(arguments: [
        "pn-prid=a:voip;pn-param=T.b.voip", "pn-provider=apns;pn-provider=apns;pn-param=T.b.voip;pn-prid=a:voip",
        "pn-provider=apns;pn-param=T..voip;pn-prid=a:voip", "pn-provider=apns;pn-param=T.b.voip;pn-prid=:voip",
        "pn-provider=apns;pn-param=T.b.voip&remote;pn-prid=a:voip", "pn-provider=apns;pn-param=T.b.sms;pn-prid=a:sms",
        "pn-provider=apns;pn-param=T.b.voip",
    ])
    func `what cannot be used is refused`(parameters: String) throws {
        let contact = try NameAddress(parsing: Bytes("<sip:a@192.0.2.1;\(parameters)>"))
        #expect(throws: SIPError.self) { try PushParameters(of: contact) }
    }

    @Test func `a token alone is for the service that is named, and no token is shown`() throws {
        let contact = try NameAddress(
            parsing: Bytes("<sip:a@192.0.2.1;pn-provider=apns.dev;pn-param=T.b.c.voip;pn-prid=0123456789abcdef>")
        )
        let push = try #require(try PushParameters(of: contact))
        #expect(push.tokens[.voip]?.bytes.text == "0123456789abcdef" && push.bundle == "b.c")
        #expect(!"\(push)".contains("0123456789abcdef"))
        #expect(try PushParameters(of: NameAddress(parsing: Bytes("<sip:a@192.0.2.1;transport=tcp>"))) == nil)
    }
}
