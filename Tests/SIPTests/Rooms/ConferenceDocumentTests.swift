import TestSupport
import Testing

@testable import SIP

/// What conference servers tell of a room.
@Suite struct ConferenceDocumentTests {
    private let example: [UInt8]

    init() throws { example = Array(try Fixture.data("rooms/rfc4575-basic.xml")) }

    private func read(_ text: String) throws -> ConferenceDocument { try ConferenceDocument(parsing: Bytes(text)) }

    private func document(_ attributes: String, _ inner: String = "") -> String {
        "<c:conference-info xmlns:c=\"urn:ietf:params:xml:ns:conference-info\" \(attributes)>\(inner)</c:conference-info>"
    }

    @Test func `the document of RFC 4575 is read`() throws {
        let document = try ConferenceDocument(parsing: example[...])
        #expect(document.entity == "sips:conf233@example.com" && document.state == .full && document.version == 1)
        #expect(document.subject == "Agenda: This month's goals")
        #expect(document.users.map(\.entity) == ["sip:bob@example.com", "sip:alice@example.com"])
        #expect(document.users.map(\.name) == ["Bob Hoskins", "Alice"])
        let devices = document.users.flatMap(\.endpoints)
        #expect(devices.map(\.entity) == ["sip:bob@pc33.example.com", "sip:4kfk4j392jsu@example.com;grid=433kj4j3u"])
        #expect(devices.map(\.name) == ["Bob's Laptop", nil])
        #expect(devices.map(\.status) == ["disconnected", "connected"])
    }

    @Test func `what is not told is nil, and what names nobody is passed over`() throws {
        let bare = try read(document("entity=\"sip:r@x\""))
        #expect(bare.state == .full && bare.version == nil && bare.subject == nil && bare.users.isEmpty)
        let inner = """
            <c:users><c:user/><c:user entity=""/><c:user entity="a" state="half"/><user entity="b"/>
            <c:user entity="sip:c@x" state="partial"><c:roles><c:entry>admin</c:entry><c:entry>participant</c:entry></c:roles>
            <c:endpoint/><c:endpoint entity="d" state="deleted"/></c:user></c:users>
            """
        let some = try read(
            document(
                "entity=\"sip:r@x\" state=\"partial\" version=\"4294967295\"",
                inner.replacing("<user", with: "<c:x")
            )
        )
        #expect(some.version == .max && some.state == .partial)
        #expect(some.users.map(\.entity) == ["sip:c@x"] && some.users.first?.roles == ["admin", "participant"])
        #expect(some.users.first?.endpoints.map(\.state) == [.deleted])
    }

    @Test(arguments: [
        "", "<a/>", "<conference-info entity=\"sip:r@x\"/>",
        "<conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\"/>",
        "<conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\" entity=\"a\" version=\"-1\"/>",
        "<conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\" entity=\"a\" version=\"4294967296\"/>",
        "<conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\" entity=\"a\" state=\"half\"/>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><conference-info xmlns=\"urn:ietf:params:xml:ns:conference-info\" entity=\"&b;\"/>",
    ])
    func `what tells nothing of a conference is refused`(text: String) {
        #expect(throws: SIPError.self) { try read(text) }
    }

    @Test func `long names are cut, long addresses and devices beyond the limit are passed over`() throws {
        let long = String(repeating: "x", count: 2000)
        let devices = (0..<100).map { "<c:endpoint entity=\"sip:\($0)@x\"/>" }.joined()
        let inner = """
            <c:conference-description><c:subject>\(long)</c:subject></c:conference-description>
            <c:users><c:user entity="sip:\(long)@x"/>
            <c:user entity="sip:a@x"><c:display-text>\(long)</c:display-text>\(devices)</c:user></c:users>
            """
        let read = try read(document("entity=\"sip:r@x\"", inner))
        #expect(read.subject?.count == 256 && read.users.map(\.entity) == ["sip:a@x"])
        #expect(read.users.first?.name?.count == 256 && read.users.first?.endpoints.count == 32)
    }

    @Test func `a document that is cut anywhere is refused, and one with another byte breaks nothing`() throws {
        let end = try #require(example.lastIndex(of: 0x3E))
        for count in thorough(0...end, each: 5) {
            #expect(throws: SIPError.self, "\(count)") { try ConferenceDocument(parsing: example[..<count]) }
        }
        for place in thorough(example.indices, each: 5) {
            for byte in [0x22, 0x3C, 0x41, 0xFF] as [UInt8] {
                var changed = example
                changed[place] = byte
                var state = ConferenceState()
                if let read = try? ConferenceDocument(parsing: changed[...]) { _ = state.take(read) }
                #expect(state.members.count <= 2)
            }
        }
    }
}
