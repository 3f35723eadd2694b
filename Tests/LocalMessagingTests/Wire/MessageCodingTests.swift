import NIOCore
import Testing

@testable import LocalMessaging

struct MessageCodingTests {
    private static let bounds = MessageBounds(MessagingConfiguration())

    @Test func `a hundred thousand arrays within each other are refused before a decoder sees them`() {
        let payload = ByteBuffer(repeating: 0x81, count: 100_000)
        #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode([Int].self, from: payload, within: Self.bounds)
        }
    }

    @Test func `what is encoded decodes to the same`() throws {
        let note = Note(text: "é \u{1F4DE} \" \\ \n \u{0}")
        #expect(try MessageCoding.decode(Note.self, from: MessageCoding.encode(note), within: Self.bounds) == note)
    }

    @Test(arguments: [
        // {}, {"text": 1}, {"text": null}
        ("a0", "text"), ("a1 64 74657874 01", "text: an integer"), ("a1 64 74657874 f6", "text: null"), ("", "empty"),
        ("a1", "not there"), ("00", "an integer"), ("f6", "null"), ("a1 64 74657874 61 ff", "byte 6"),
    ])
    func `bytes that are no such message are refused, with the place`(text: String, place: String) {
        let error = #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode(Note.self, from: ByteBuffer(cbor: text), within: Self.bounds)
        }
        #expect(error?.description.contains(place) ?? false, "\(error?.description ?? "")")
    }

    @Test func `the place of an error is told however deep`() throws {
        struct Outer: Codable {
            let notes: [String: [Note]]
        }
        let text = "a1 65 6e6f746573 a1 61 61 82 a1 64 74657874 60 a1 64 74657874 f5"
        let error = #expect(throws: MessageCoding.Failure.self) {
            try MessageCoding.decode(Outer.self, from: ByteBuffer(cbor: text), within: Self.bounds)
        }
        #expect(error?.description == "notes.a.1.text: a truth value, where String is expected.")
    }

    @Test func `a number that does not fit is refused`() {
        for text in ["18 80", "38 80", "fb 7e37e43c8800759c"] {
            #expect(throws: MessageCoding.Failure.self) {
                try MessageCoding.decode(Int8.self, from: ByteBuffer(cbor: text), within: Self.bounds)
            }
        }
    }

    @Test func `a value that encodes nothing is an error of its sender`() {
        struct Nothing: Encodable {
            func encode(to encoder: any Encoder) {}
        }
        #expect(throws: MessageCoding.Failure.self) { try MessageCoding.encode(Nothing()) }
    }
}
