import CallBasics
import Testing

@testable import SIP

/// The messages of RFC 4475 and RFC 5118, and others of the corpora, read where they stand.
@Suite struct TortureTests {
    private static let needsCorpora: ConditionTrait = .enabled(
        if: CorpusFiles.areThere,
        "the corpora are not on this machine"
    )

    /// What the column `expect` allows the message layer to say; methods and types are for others to refuse.
    static let allowed: [String: Set<Int>] = [
        "accept": [0], "accept-first": [0], "400": [400], "400-or-lenient": [0, 400], "accept-or-400": [0, 400],
        "400-or-501": [400], "400-or-406": [0], "415": [0], "416": [416], "420": [0], "501": [0], "505": [505],
        // 400 or nothing: of a response, that it is not well-formed, or no message.
        "drop": [0, 400, -1],
    ]

    @Test(arguments: try TortureMessage.all())
    func `each torture message gets what the RFC asks`(file: TortureMessage) throws {
        let expected = try #require(Self.allowed[file.expectation])
        #expect(expected.contains(Self.verdict(of: file.bytes)))
        guard let message = try? SIPMessage(datagram: file.bytes) else {
            #expect(file.name == "bigcode.dat")
            return
        }
        Messages.exercise(message)
        Messages.expectRoundTrip(message, file.name)
    }

    /// The status code that the message deserves, 0 when it is sound.
    private static func verdict(of bytes: [UInt8]) -> Int {
        do {
            _ = try SIPMessage(datagram: bytes).validated()
            return 0
        } catch {
            return error.code.statusCode ?? -1
        }
    }

    @Test func `a NUL behind a backslash in quotes belongs to a name, and is answered so`() throws {
        let file = try #require(try TortureMessage.all().first { $0.name == "intmeth.dat" })
        let message = try SIPMessage(datagram: file.bytes).validated()
        let name = "BEL:\u{7} NUL:\0 DEL:\u{7F}"
        #expect(try message.to()?.displayName?.text == name)
        #expect(try message.from()?.displayName?.text == "token1~` token2'+_ token3*%!.-")
        let answer = try message.response(status: 501, reason: "Not Implemented", tag: Bytes("t"))
        let again = try SIPMessage(datagram: answer.bytes).validated()
        #expect(try again.to()?.displayName?.text == name)
        #expect(try again.to()?.tag?.text == "t")
        for subject in ["\\\0", "\"\0\"", "\"\\\\\0\"", "\"\\\r\"", "\"\" \\\0"] {
            #expect(Bytes(subject).wouldEndLine)
            #expect(try SIPMessage(datagram: Messages.request(Messages.options, "s: \(subject)")).defect != nil)
        }
    }

    @Test(needsCorpora) func `the strangest message of all is understood`() throws {
        let files = try CorpusFiles.messages(in: "rfc/rfc4475")
        let message = try SIPMessage(datagram: try #require(files.first { $0.name == "wsinv.dat" }).bytes)
        let vias = try message.list(.via, as: Via.self)
        #expect(vias.map(\.transport.text) == ["UDP", "TCP", "UDP"])
        #expect(vias.map(\.host.text) == ["192.0.2.2", "spindle.example.com", "192.168.255.111"])
        #expect(try message.cSeq() == CSeq(9, .invite))
        #expect(try message.to()?.tag?.text == "1918181833n")
        #expect(try message.from()?.displayName?.text == "J Rosenberg \\\"")
        #expect(try message.contacts().first?.preference == 330)
        #expect(message.values(named: "newfangledheader") == ["newfangled value continued newfangled value"])
        #expect(message.values(named: "s") == [""])
    }

    @Test(needsCorpora, arguments: [("rfc/flows/rfc3665", 78), ("rfc/flows/rfc3428", 1), ("own/captures", 150)])
    func `messages of whole calls are sound and read as they are written`(folder: String, atLeast: Int) throws {
        let files = try CorpusFiles.messages(in: folder)
        #expect(files.count >= atLeast)
        for (name, bytes) in files {
            let message = try SIPMessage(datagram: bytes)
            #expect(throws: Never.self, "\(name)") { try message.validated() }
            Messages.exercise(message)
            Messages.expectRoundTrip(message, name)
        }
    }

    /// Their authors left out headers and lengths: they are read, but not all are sound.
    @Test(
        needsCorpora,
        arguments: ["rfc/flows/cc-transfer-06", "rfc/flows/rfc3891", "rfc/flows/rfc4538", "fetched/kamailio-sip"]
    )
    func `messages that are shortened or made badly are read without a trap`(folder: String) throws {
        let files = try CorpusFiles.messages(in: folder)
        #expect(!files.isEmpty)
        for (name, bytes) in files {
            guard let message = try? SIPMessage(datagram: bytes) else { continue }
            Messages.exercise(message)
            Messages.expectRoundTrip(message, name)
        }
    }
}
