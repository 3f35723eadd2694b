import CallBasics
import Testing

@testable import SIP

/// The messages of RFC 4475 and RFC 5118 through transactions and the rules of a user agent that takes all their methods.
@Suite(.enabled(if: CorpusFiles.areThere, "the corpora are not on this machine"))
struct TortureAnswerTests {
    private static let taken = Capabilities(
        methods: [.invite, .ack, .bye, .cancel, .options, .register, .message],
        extensions: [],
        bodies: [.init(.invite, ["application/sdp"]), .init(.message, ["multipart/mixed", "text/plain"])]
    )

    /// What the column `expect` allows; 0 is taken.
    private static let allowed: [String: Set<Int?>] = [
        "accept": [0], "accept-first": [0], "400": [400], "400-or-lenient": [0, 400], "accept-or-400": [0, 400],
        "400-or-501": [400, 501], "415": [415], "416": [416], "501": [501],
    ]

    /// The code of the final answer; 0 when the request is taken, nil when it gets none.
    private func answer(to bytes: [UInt8]) throws -> Int? {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow()
        guard let message = try? SIPMessage(datagram: bytes) else { return nil }
        table.receive(message, on: flow, at: .zero)
        var answer: Int?
        while let output = table.poll() {
            switch output {
            case .request(let request, let id, _):
                guard let refusal = try Self.taken.refusal(of: request) else { return 0 }
                table.respond(try refusal.response(to: request, tag: Bytes("t")), to: id, at: .zero)
            case .send(let sent, _):
                let status = try SIPMessage(datagram: sent).statusCode
                if status != 100 { answer = status }
            case .acknowledgement: return 0
            case .cancelled, .response, .failure: break
            }
        }
        return answer
    }

    @Test(arguments: [("rfc/rfc4475", 15), ("rfc/rfc5118", 0)])
    func `each gets the answer that the RFC asks for`(folder: String, refusedCount: Int) throws {
        let expectations = try CorpusFiles.expectations(in: folder)
        var refused = 0
        for (name, bytes) in try CorpusFiles.messages(in: folder) {
            let isResponse = try SIPMessage(datagram: bytes).statusCode != nil
            let codes = try #require(expectations[name].flatMap { Self.allowed[$0] }, "\(name)")
            let expected = isResponse ? [nil] : codes
            let answer = try answer(to: bytes)
            #expect(expected.contains(answer), "\(name): \(String(describing: answer))")
            if answer ?? 0 != 0 { refused += 1 }
        }
        #expect(refused == refusedCount)
    }
}
