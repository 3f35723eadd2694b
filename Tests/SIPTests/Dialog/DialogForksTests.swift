import CallBasics
import Testing

@testable import SIP

/// One INVITE that rings many phones.
@Suite struct DialogForksTests {
    private static let flow = Transactions.clientFlow()

    private func outcome(_ forks: inout DialogForks, _ status: Int, _ tag: String) throws -> String {
        switch try forks.receive(Calls.response(status, tag: tag), on: Self.flow) {
        case .none: "none"
        case .early(let dialog): "early \(dialog.id.remoteTag.text)"
        case .answered(let dialog): "answered \(dialog.id.remoteTag.text)"
        case .surplus(let dialog): "surplus \(dialog.id.remoteTag.text)"
        case .repeated(let id): "repeated \(id.remoteTag.text)"
        }
    }

    @Test func `the first 2xx makes the call, further ones are ended, repeats are known`() throws {
        var forks = DialogForks(try Calls.invite())
        let story: [(Int, String, String)] = [
            (180, "x", "early x"), (183, "y", "early y"), (180, "x", "none"), (200, "y", "answered y"),
            (200, "y", "repeated y"), (180, "z", "none"), (200, "x", "surplus x"), (200, "w", "surplus w"),
            (200, "x", "repeated x"), (486, "v", "none"),
        ]
        for (status, tag, expected) in story {
            #expect(try outcome(&forks, status, tag) == expected, "\(status) \(tag)")
        }
    }

    @Test func `the latest is the one that was heard of last`() throws {
        var forks = DialogForks(try Calls.invite())
        _ = try outcome(&forks, 183, "x")
        _ = try outcome(&forks, 183, "y")
        #expect(forks.latest?.id.remoteTag.text == "y")
        _ = try outcome(&forks, 183, "x")
        #expect(forks.latest?.id.remoteTag.text == "x")
        forks.endEarly()
        #expect(forks.latest == nil && forks.count == 0)
    }

    @Test func `ten thousand tags take no more room than the limit`() throws {
        var forks = DialogForks(try Calls.invite())
        for index in 0..<10_000 {
            _ = try outcome(&forks, index % 2 == 0 ? 180 : 200, "t\(index)")
            #expect(forks.count <= 2 * DialogForks.limit)
        }
    }

    @Test func `a 2xx that cannot be used changes nothing`() throws {
        var forks = DialogForks(try Calls.invite())
        _ = try outcome(&forks, 180, "x")
        #expect(throws: SIPError.self) {
            try forks.receive(Calls.response(200, tag: "x", contact: "sip:"), on: Self.flow)
        }
        #expect(try outcome(&forks, 200, "x") == "answered x")
    }
}

/// The 2xx that is sent until its ACK comes.
@Suite struct AnswerRepeaterTests {
    private func run(until ack: Int?) -> [Int] {
        var repeater = AnswerRepeater(TransactionTimers(), at: .zero)
        var times: [Int] = []
        while let deadline = repeater.deadline {
            let milliseconds = Int((deadline - .zero).milliseconds)
            if let ack, milliseconds >= ack {
                repeater.receiveAck()
                break
            }
            switch repeater.handleTimeout(at: deadline) {
            case .send: times.append(milliseconds)
            case .giveUp: times.append(-milliseconds)
            case nil: break
            }
        }
        #expect(repeater.isOver && repeater.deadline == nil && repeater.handleTimeout(at: .zero + .seconds(99)) == nil)
        return times
    }

    // RFC 3261, section 13.3.1.4: T1, doubled up to T2, for 64 T1.
    @Test func `it is repeated at growing intervals, and then given up`() {
        let repeats = [500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]
        #expect(run(until: nil) == repeats + [-32_000])
    }

    @Test func `the ACK ends it`() { #expect(run(until: 3000) == [500, 1500]) }
}
