import TestSupport
import Testing

@testable import SIP

/// Lists of those who are invited.
@Suite struct ResourceListTests {
    private func read(_ text: String) throws -> [String] {
        try ResourceList(parsing: Bytes(text)).addresses.map(\.bytes.text)
    }

    private func list(_ inner: String) -> String {
        "<resource-lists xmlns=\"urn:ietf:params:xml:ns:resource-lists\">\(inner)</resource-lists>"
    }

    @Test func `the list of RFC 5366 is read`() throws {
        let list = try ResourceList(parsing: Array(Fixture.data("rooms/rfc5366-list.xml"))[...])
        #expect(
            list.addresses.map(\.bytes.text) == [
                "sip:bill@example.com", "sip:randy@example.net", "sip:eddy@example.com", "sip:joe@example.org",
                "sip:carol@example.net", "sip:ted@example.net", "sip:andy@example.com",
            ]
        )
    }

    @Test func `what is written is read the same, whatever the addresses`() throws {
        let addresses = try ["sip:a@example.com", "sips:b&c@example.com;x='1'?Subject=a%20b"].map { try SIPURI($0) }
        let written = ResourceList(addresses)
        #expect(try ResourceList(parsing: written.body[...]) == written)
    }

    @Test(arguments: [
        (
            "<list><entry uri=\"sip:a@x.org\"/><list><entry uri=\"sip:b@x.org\"/></list></list>",
            ["sip:a@x.org", "sip:b@x.org"]
        ),
        ("<list><entry uri=\"tel:+1\"/><entry/><entry uri=\"\"/><entry uri=\"sip:c@x.org\"/></list>", ["sip:c@x.org"]),
        ("<list><external anchor=\"http://x.org\"/><entry-ref ref=\"y\"/></list>", []),
        ("<list><entry uri=\"sip:anonymous@anonymous.invalid\"/></list>", []), ("", []),
        ("<other xmlns=\"urn:x\" uri=\"sip:a@x.org\"/>", []),
    ])
    func `who has a SIP address is taken, at whatever depth, and nothing is fetched`(inner: String, expected: [String])
        throws
    {
        #expect(try read(list(inner)) == expected)
    }

    @Test func `what is no list, or one of too many, is refused`() throws {
        for wrong in ["", "<a/>", "<resource-lists/>", "<!DOCTYPE a><resource-lists/>"] {
            #expect(throws: SIPError.self, "\(wrong)") { try read(wrong) }
        }
        let entries = { count in list("<list>\(String(repeating: "<entry uri=\"sip:a@b\"/>", count: count))</list>") }
        #expect(try read(entries(ResourceList.limit)).count == ResourceList.limit)
        #expect(throws: SIPError.self) { try read(entries(ResourceList.limit + 1)) }
    }

    @Test func `a list that is cut anywhere is refused, and one with another byte breaks nothing`() throws {
        let bytes = Array(try Fixture.data("rooms/rfc5366-list.xml"))
        let end = try #require(bytes.lastIndex(of: 0x3E))
        for count in thorough(0...end, each: 5) {
            #expect(throws: SIPError.self, "\(count)") { try ResourceList(parsing: bytes[..<count]) }
        }
        for place in thorough(bytes.indices, each: 5) {
            for byte in [0, 0x22, 0x26, 0x3C, 0x3E, 0x41, 0xFF] as [UInt8] {
                var changed = bytes
                changed[place] = byte
                let count = (try? ResourceList(parsing: changed[...]))?.addresses.count ?? 0
                #expect(count <= 8)
            }
        }
    }
}
