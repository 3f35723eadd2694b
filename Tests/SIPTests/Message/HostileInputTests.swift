import CallBasics
import Testing

@testable import SIP

/// Whatever comes, nothing traps, and what is written is one message.
@Suite struct HostileInputTests {
    static let seeds = [Messages.invite, Messages.ok]

    static func exercise(_ bytes: [UInt8]) {
        var framer = StreamFramer()
        framer.append(bytes)
        while framer.next() != nil {}
        if framer.waitingByteCount > bytes.count { Issue.record("it keeps more than came") }
        guard let message = try? SIPMessage(datagram: bytes) else { return }
        Messages.exercise(message)
        Messages.expectRoundTrip(message, "\(bytes)")
        let answer = try? message.response(status: 400, reason: "Bad Request", tag: Bytes("t"))
        if let answer { Messages.expectRoundTrip(answer, "\(bytes)") }
    }

    @Test(arguments: seeds) func `every truncation is read without a trap`(seed: [UInt8]) {
        for count in 0...seed.count { Self.exercise(Array(seed.prefix(count))) }
    }

    @Test(arguments: seeds) func `every byte may be another one`(seed: [UInt8]) {
        var generator = SeededGenerator(seed: 7)
        let special = Array("\r\n \t\0\",;:<>@?=%/[]\\\u{7F}".utf8)
        for index in seed.indices {
            var spoiled = seed
            spoiled[index] = UInt8(truncatingIfNeeded: generator.next())
            Self.exercise(spoiled)
            spoiled[index] = special[Int(generator.next() % UInt64(special.count))]
            Self.exercise(spoiled)
        }
    }

    @Test func `random bytes are read without a trap`() {
        var generator = SeededGenerator(seed: 11)
        let alphabet = Array("SIP/2.0 200 INVITE sip:a@b:5\r\nVia: ;=\"<>[]%,?\\".utf8)
        for _ in 0..<2000 {
            let count = Int(generator.next() % 120)
            let bytes = (0..<count).map { _ in alphabet[Int(generator.next() % UInt64(alphabet.count))] }
            Self.exercise(bytes)
            Self.exercise(Array("A sip:a SIP/2.0\r\n".utf8) + bytes)
            _ = try? SIPURI(parsing: bytes[...])
            _ = try? SIPURI(parsing: Bytes("sip:") + bytes)
            _ = HostAddress(bytes[...])
        }
    }
}
