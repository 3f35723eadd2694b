import TestSupport
import Testing

@testable import SIP

/// What it costs to read what somebody has made dear.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine, .timeLimit(.minutes(2)))
struct MessageCostRealTimeTests {
    private static let head = """
        INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=x\r\nTo: <sip:c@d>\r\n\
        Call-ID: x\r\nCSeq: 1 INVITE\r\n
        """

    /// Messages as long as they may be, each full of one thing.
    private static let dearest: [(name: String, bytes: [UInt8])] = {
        func message(_ headers: String, body: String = "") -> [UInt8] {
            Array((head + headers + "Content-Length: \(body.utf8.count)\r\n\r\n" + body).utf8)
        }
        func many(_ text: String, _ byteCount: Int = 60_000) -> String {
            String(repeating: text, count: byteCount / text.utf8.count)
        }
        let mixed = "Content-Type: multipart/mixed;boundary=x\r\n"
        return [
            ("a part's header in many lines", message(mixed, body: "--x\r\nA: b\r\n" + many(" \n") + "\r\n--x--")),
            ("many headers of a part", message(mixed, body: "--x\r\n" + many("c: a/b\r\n") + "\r\n--x--")),
            ("what is almost a delimiter", message(mixed, body: "--x\r\n" + many("--\r\n"))),
            ("many parts", message(mixed, body: many("--x\r\n\r\n\r\n", 200) + "--x--")),
            ("a header in many lines", message("Subject: a" + many("\r\n ", 15_000) + "\r\n")),
            ("a list of words", message("Supported: a" + many(",a", 15_000) + "\r\n")),
            ("addresses", message(many("m: <sip:a@b;c;d;e>;f;g\r\n", 6000))),
            ("blanks", message("m: <sip:a@b>" + many(" ", 15_000) + ";x\r\n")),
            ("quotes", message("m: \"" + many("\\\"", 15_000) + "\" <sip:a@b>\r\n")),
        ]
    }()

    /// All that an agent reads of a request.
    private static func read(_ bytes: [UInt8]) {
        guard let message = try? SIPMessage(datagram: bytes) else { return }
        _ = try? message.validated()
        _ = try? message.bodyParts()
        _ = try? message.sessionDescription()
        _ = try? (message.tokens(of: .supported), message.contacts(), message.list(.contact, as: NameAddress.self))
        _ = (try? DialogID(received: message), message.description, message.bytes)
    }

    /// Without optimisation the dearest takes 60 ms on one core; what looks at all the rest for each byte takes seconds.
    @Test(arguments: dearest.indices) func `the dearest message takes no longer than the next`(index: Int) {
        let (name, bytes) = Self.dearest[index]
        #expect(bytes.count <= MessageLimits.byteCount, "\(name)")
        let clock = ContinuousClock()
        let fastest = (0..<3).map { _ in clock.measure { Self.read(bytes) } }.min() ?? .zero
        #expect(fastest < (isOptimised ? .milliseconds(100) : .seconds(1)), "\(name)")
    }
}
