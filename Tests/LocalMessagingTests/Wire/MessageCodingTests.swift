import NIOCore
import Testing

@testable import LocalMessaging

struct MessageCodingTests {
    private static let bounds = JSONBounds(MessagingConfiguration())

    private static func excess(_ text: String, depth: Int = 3, count: Int = 10) -> String? {
        var configuration = MessagingConfiguration()
        (configuration.maximumDepth, configuration.maximumValueCount) = (depth, count)
        let bounds = JSONBounds(configuration)
        return Array(text.utf8).withUnsafeBytes { bounds.excess(in: $0) }
    }

    @Test(arguments: ["[[[]]]", #"{"a":{"b":[]}}"#, "[[[],[],[]]]", "]]]][[[", "", "1"])
    func `nesting within the bound passes`(text: String) {
        #expect(Self.excess(text) == nil)
    }

    @Test(arguments: ["[[[[]]]]", #"{"a":[{"b":[]}]}"#, "[[[["])
    func `nesting beyond the bound is refused, closed or not`(text: String) {
        #expect(Self.excess(text) == "more than 3 levels of nesting.")
    }

    @Test func `values are counted`() {
        #expect(Self.excess("[1,2,3,4,5,6,7,8]", count: 9) == nil)
        #expect(Self.excess("[1,2,3,4,5,6,7,8,9]", count: 9) == "more than 9 values.")
        #expect(Self.excess("[[],[],[]]", count: 4) == "more than 4 values.")
    }

    @Test func `brackets and commas in strings count for nothing`() {
        #expect(Self.excess(#"["[[[[[[{{{{,,,,,,,,,,,,,,"]"#) == nil)
        #expect(Self.excess(#"["\"[[[[[["]"#) == nil)
        #expect(Self.excess(#"["\\",[[[]]]]"#) != nil)
        #expect(Self.excess(#"["\\\"[[[["]"#) == nil)
    }

    @Test func `a hundred thousand brackets are refused before a decoder sees them`() {
        let payload = ByteBuffer(string: String(repeating: "[", count: 100_000))
        #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode([Int].self, from: payload, within: Self.bounds)
        }
    }

    @Test func `what is encoded decodes to the same`() throws {
        let note = Note(text: "é \u{1F4DE} \" \\ \n \u{0}")
        #expect(try MessageCoding.decode(Note.self, from: MessageCoding.encode(note), within: Self.bounds) == note)
    }

    @Test(arguments: [
        ("{}", "text"), (#"{"text":1}"#, "text"), (#"{"text":null}"#, "text"), ("", ""), ("{", ""), ("\u{0}", ""),
        (#"{"text":"\ud800"}"#, ""), ("nul", ""),
    ])
    func `bytes that are no such message are refused, with the place`(text: String, place: String) {
        let error = #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode(Note.self, from: ByteBuffer(string: text), within: Self.bounds)
        }
        #expect(error?.description.contains(place) ?? false)
    }

    @Test func `a number that does not fit is refused`() {
        #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode(Int8.self, from: ByteBuffer(string: "1e99"), within: Self.bounds)
        }
    }

    @Test func `a value that JSON cannot say is an error of its sender`() {
        #expect(throws: MessageCoding.Failure.self) { try MessageCoding.encode(Double.nan) }
    }
}
