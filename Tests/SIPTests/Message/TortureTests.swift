import CallBasics
import Testing

@testable import SIP

/// The messages of RFC 4475 and RFC 5118, read where they stand; without the corpora the suite shows as skipped.
@Suite(.enabled(if: CorpusFiles.areThere, "the corpora are not on this machine"))
struct TortureTests {
    /// What the column `expect` allows the message layer to say; methods and types are for others to refuse.
    static let allowed: [String: Set<Int>] = [
        "accept": [0], "accept-first": [0], "400": [400], "400-or-lenient": [0, 400], "accept-or-400": [0, 400],
        "400-or-501": [400], "416": [416], "501": [0], "415": [0],
    ]

    @Test(arguments: [("rfc/rfc4475", 29), ("rfc/rfc5118", 7)])
    func `each torture message gets what the RFC asks`(folder: String, count: Int) throws {
        let expectations = try CorpusFiles.expectations(in: folder)
        let files = try CorpusFiles.messages(in: folder)
        #expect(files.count == count)
        for (name, bytes) in files {
            let expectation = try #require(expectations[name], "\(name)")
            let expected = try #require(Self.allowed[expectation], "\(name)")
            #expect(expected.contains(Self.verdict(of: bytes)), "\(name)")
            let message = try SIPMessage(datagram: bytes)
            Messages.exercise(message)
            Messages.expectRoundTrip(message, name)
        }
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

    @Test func `the strangest message of all is understood`() throws {
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

    @Test(arguments: [("rfc/flows/rfc3665", 78), ("rfc/flows/rfc3428", 1), ("own/captures", 150)])
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
    @Test(arguments: ["rfc/flows/cc-transfer-06", "rfc/flows/rfc3891", "rfc/flows/rfc4538", "fetched/kamailio-sip"])
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
