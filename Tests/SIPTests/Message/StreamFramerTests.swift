import CallBasics
import Testing

@testable import SIP

@Suite struct StreamFramerTests {
    /// What a stream gives, when it comes in the given pieces.
    static func elements(_ pieces: [[UInt8]]) -> [String] {
        var framer = StreamFramer()
        var elements: [String] = []
        for piece in pieces {
            framer.append(piece)
            while let element = framer.next() {
                switch element {
                case .message(let message): elements.append(message.description)
                case .ping: elements.append("ping")
                case .pong: elements.append("pong")
                case .failure(let error, let message):
                    elements.append("failure \(error.code) \(message?.isAnswerable == true)")
                }
            }
        }
        return elements
    }

    static let stream = Messages.invite + Array("\r\n".utf8) + Messages.ok + Array("\r\n\r\n".utf8) + Messages.request()

    @Test func `messages and keep-alives come out in their order`() throws {
        let messages = try [Messages.invite, Messages.ok, Messages.request()].map {
            try SIPMessage(datagram: $0).description
        }
        #expect(Self.elements([Self.stream]) == [messages[0], "pong", messages[1], "pong", "ping", messages[2]])
    }

    @Test func `a stream that is cut anywhere gives the same`() {
        let whole = Self.elements([Self.stream])
        for cut in 0...Self.stream.count {
            #expect(Self.elements([Array(Self.stream[..<cut]), Array(Self.stream[cut...])]) == whole)
        }
    }

    @Test func `bytes may come one by one`() {
        #expect(Self.elements(Self.stream.map { [$0] }) == Self.elements([Self.stream]))
    }

    @Test(arguments: [
        ("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP h\r\nContent-Type: a/b\r\n\r\n", "failure badRequest true"),
        ("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP h\r\nl: x\r\n\r\n", "failure badRequest true"),
        ("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP h\r\nl: 65536\r\n\r\n", "failure messageTooLarge true"),
        (
            "OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP h\r\nl: 9223372036854775807\r\n\r\n",
            "failure messageTooLarge true"
        ),
        ("GET / HTTP/1.1\r\n\r\n", "failure notAMessage false"),
        ("\rX", "failure notAMessage false"),
    ])
    func `a stream that cannot go on ends with one failure`(text: String, failure: String) {
        let stream = Array(text.utf8) + Messages.ok
        #expect(Self.elements([stream]) == [failure])
        #expect(Self.elements(stream.map { [$0] }) == [failure])
    }

    @Test(arguments: [[0x16, 0x03, 0x01], [0x80], [0x20], [0]] as [[UInt8]])
    func `what begins no message ends the stream at its first byte`(bytes: [UInt8]) {
        #expect(Self.elements([bytes]) == ["failure notAMessage false"])
        #expect(Self.elements([Array("\r\n".utf8) + bytes]) == ["pong", "failure notAMessage false"])
    }

    @Test func `a head without end is refused and not kept`() {
        var framer = StreamFramer()
        framer.append(Array("OPTIONS sip:a@b SIP/2.0\r\nX: ".utf8))
        var failures = 0
        for _ in 0..<100 {
            framer.append(Array(repeating: 65, count: 1024))
            while case .failure(let error, _)? = framer.next() {
                failures += 1
                #expect(error.code == .messageTooLarge)
            }
            #expect(framer.waitingByteCount <= MessageLimits.byteCount)
        }
        #expect(failures == 1)
        #expect(framer.isClosed)
        #expect(framer.waitingByteCount == 0)
    }

    @Test func `nothing waits after whole messages`() {
        var framer = StreamFramer()
        for _ in 0..<1000 {
            framer.append(Self.stream)
            while framer.next() != nil {}
            #expect(framer.waitingByteCount == 0)
        }
    }
}
