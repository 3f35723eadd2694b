import Testing

@testable import SIP

/// XML that messages bring: what is read, and what is refused before it costs anything.
@Suite struct XMLElementTests {
    private func read(_ text: String) throws -> XMLElement { try XMLElement(parsing: Bytes(text)) }

    @Test func `elements, attributes, text and namespaces are read`() throws {
        let document = try read(
            """
            \u{FEFF}<?xml version='1.0'?><!-- a > b -->
            <a:list xmlns:a = "urn:a" xmlns="urn:d" version='2' a:hidden="x"> one &amp; <![CDATA[<two>]]> &#x41;&#66;
              <entry uri="sip:a@b?x=1&quot;"/><a:entry>x</a:entry><?skip me?>
            </a:list>

            """
        )
        #expect(document.namespace == "urn:a" && document.name == "list")
        #expect(document.attributes == ["version": "2"])
        #expect(document.text.hasPrefix("one & <two> AB"))
        #expect(document.children.map(\.namespace) == ["urn:d", "urn:a"])
        #expect(document.children[0].attributes == ["uri": "sip:a@b?x=1\""])
        #expect(document["entry"]?.text == "x" && document["other"] == nil)
    }

    @Test(arguments: [
        "", "x", "<", "<a", "<a>", "<a></b>", "<a/><b/>", "<a/>x", "<a b/>", "<a b=c/>", "<a b='1' b='2'/>", "<p:a/>",
        "<a>&x;</a>", "<a>&#xD800;</a>", "<a>&#99999999999;</a>", "<a>&amp</a>", "<!DOCTYPE a><a/>",
        "<a><!ELEMENT b></a>",
        "<a><!-- </a>", "<a><![CDATA[</a>", "<?xml <a/>", "</a>", "<a></a", "<a =''/>",
    ])
    func `what is no document, or declares anything, is refused`(text: String) {
        #expect(throws: SIPError.self) { try read(text) }
    }

    @Test func `depth, number and length have their limits`() throws {
        let deep = { (count: Int) in String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count) }
        #expect(throws: Never.self) { try read(deep(XMLElement.depth)) }
        #expect(throws: SIPError.self) { try read(deep(XMLElement.depth + 1)) }
        let wide = { (count: Int) in "<a>" + String(repeating: "<b/>", count: count) + "</a>" }
        #expect(try read(wide(XMLElement.count - 1)).children.count == XMLElement.count - 1)
        #expect(throws: SIPError.self) { try read(wide(XMLElement.count)) }
        let named = { (count: Int) in "<a" + (0..<count).map { " xmlns:p\($0)='u'" }.joined() + "/>" }
        #expect(throws: Never.self) { try read(named(XMLElement.prefixCount - 1)) }
        #expect(throws: SIPError.self) { try read(named(XMLElement.prefixCount)) }
        #expect(throws: SIPError.self) {
            try read("<a>" + String(repeating: " ", count: MessageLimits.byteCount) + "</a>")
        }
    }

    @Test func `what is escaped is read again, and any cut or flip is read or refused`() throws {
        let text = "a<b>&\"' \u{1F600}\n\u{1}"
        #expect(try read("<a b=\"\(XMLElement.escaped(text))\"/>").attributes["b"] == "a<b>&\"' \u{1F600}\n\u{FFFD}")
        let bytes = Array("<?xml version='1.0'?><a:b xmlns:a='u' c='&lt;'><!--x--><d>&#65;</d></a:b>".utf8)
        for end in bytes.indices {
            _ = try? XMLElement(parsing: bytes[..<end])
            for flip in [UInt8(1), 0x10, 0x80] {
                var other = bytes
                other[end] ^= flip
                _ = try? XMLElement(parsing: other[...])
            }
        }
    }
}
