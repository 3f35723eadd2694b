import Logging
import Testing

@testable import media_tool

/// What others say, on a terminal.
@Suite struct PrintableTests {
    @Test(arguments: [
        ("plain, é, 漢字, 👩‍👩‍👧", "plain, é, 漢字, 👩‍👩‍👧"),
        ("\u{1B}[2Jgone", "\\u{1b}[2Jgone"),
        ("one\ntwo\r\tthree", "one\\u{a}two\\u{d}\\u{9}three"),
        ("\u{7F}\u{9B}31m", "\\u{7f}\\u{9b}31m"),
        ("a\u{202E}b\u{2066}c\u{200F}", "a\\u{202e}b\\u{2066}c\\u{200f}"),
    ])
    func `control characters are written out`(text: String, shown: String) {
        #expect(text.printable == shown)
        #expect(shown.printable == shown)
    }

    @Test func `a line of the log is one line, whatever it quotes`() {
        var handler = ErrorLogHandler(label: "x", logLevel: .info)
        handler[metadataKey: "peer"] = "\u{1B}[31m"
        let event = LogEvent(
            level: .error,
            message: "one\ntwo\u{9B}",
            metadata: nil,
            source: nil,
            file: "",
            function: "",
            line: 1
        )
        #expect(handler.text(of: event) == #"error x: peer=\u{1b}[31m one\u{a}two\u{9b}"#)
    }

    @Test func `lines of our own stay lines`() {
        #expect("a\tb\nc\u{1B}d\n".printableLines == "a\tb\nc\\u{1b}d\n")
    }

    @Test func `JSON says the same, escaped as JSON does`() {
        #expect(JSONValue.string("\u{1B}\u{9B}\u{7F}\u{202E}\n").text == #""\u001b\u009b\u007f\u202e\n""#)
        #expect(JSONValue.string("\u{E0041}").text == #""\udb40\udc41""#)
    }
}
