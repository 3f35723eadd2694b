import CallBasics
import Testing

@testable import SIP

/// A flow of each side, and requests to send over it.
enum Transactions {
    static func address(_ last: UInt32, _ port: UInt16 = 5060) -> SocketAddress {
        SocketAddress(ipv4: 0xC000_0200 | last, port: port)
    }

    /// From the client's side: 192.0.2.1 to 192.0.2.2.
    static func clientFlow(_ transport: Flow.Transport = .udp) -> Flow {
        Flow(transport, local: address(1), remote: address(2))
    }

    static func serverFlow(_ transport: Flow.Transport = .udp, from last: UInt32 = 1) -> Flow {
        Flow(transport, local: address(2), remote: address(last))
    }

    static func request(_ method: String, callID: String = "c1", to tag: String = "") throws -> SIPMessage {
        try SIPMessage(
            datagram: Messages.lines(
                "\(method) sip:bob@192.0.2.2 SIP/2.0",
                "Max-Forwards: 70",
                "Route: <sip:192.0.2.2;lr>",
                "From: <sip:alice@192.0.2.1>;tag=a",
                "To: <sip:bob@192.0.2.2>\(tag)",
                "Call-ID: \(callID)",
                "CSeq: 7 \(method)",
                ""
            )
        )
    }

    /// A request as it comes from the wire.
    static func received(
        _ method: String,
        branch: String = "z9hG4bK1",
        callID: String = "c1",
        cSeq: String = "7",
        toTag: String = "",
        host: String = "192.0.2.1",
        extra: String = "X-A: b"
    ) throws -> SIPMessage {
        try SIPMessage(
            datagram: Messages.lines(
                "\(method) sip:bob@192.0.2.2 SIP/2.0",
                "Via: SIP/2.0/UDP \(host);branch=\(branch)",
                "From: <sip:alice@192.0.2.1>;tag=a",
                "To: <sip:bob@192.0.2.2>\(toTag)",
                "Call-ID: \(callID)",
                "CSeq: \(cSeq) \(method)",
                extra,
                ""
            )
        )
    }
}

extension TransactionTable {
    mutating func all() -> [Output] {
        var list: [Output] = []
        while let output = poll() { list.append(output) }
        return list
    }

    /// All that is to be sent, read again; what else there is gets lost.
    mutating func sent() throws -> [SIPMessage] {
        try all().compactMap { output in
            guard case .send(let bytes, _) = output else { return nil }
            return try SIPMessage(datagram: bytes)
        }
    }

    /// The request that came, with its name.
    mutating func request() throws -> (SIPMessage, TransactionID) {
        let requests = all().compactMap { output -> (SIPMessage, TransactionID)? in
            guard case .request(let message, let id, _) = output else { return nil }
            return (message, id)
        }
        return try #require(requests.first)
    }

    /// Lets time pass until nothing waits for it.
    mutating func finishAll() {
        while let deadline { handleTimeout(at: deadline) }
    }
}

@Suite struct TransactionTableTests {
    let none = TransactionCounts()

    @Test func `an ACK to a refusal has the way of the INVITE and the To of the response`() throws {
        var table = TransactionTable(seed: 1)
        _ = try table.send(Transactions.request("INVITE"), on: Transactions.clientFlow(), at: .zero)
        let invite = try #require(try table.sent().first)
        let response = try invite.response(status: 486, reason: "Busy Here", tag: Bytes("b"))
        table.receive(response, on: Transactions.clientFlow(), at: .ms(100))
        let outputs = table.all()
        guard case .send(let bytes, _)? = outputs.first, case .response(let up, _, _)? = outputs.last else {
            Issue.record("neither ACK nor response: \(outputs)")
            return
        }
        let ack = try SIPMessage(datagram: bytes)
        #expect(up.statusCode == 486)
        #expect(ack.method == .ack)
        #expect(try ack.requestURI() == invite.requestURI())
        for name in [HeaderName.via, .route, .from, .callID] {
            #expect(ack.values(of: name) == invite.values(of: name))
        }
        #expect(try ack.to()?.tag == Bytes("b"))
        #expect(try ack.cSeq() == CSeq(7, .ack))
        table.receive(response, on: Transactions.clientFlow(), at: .ms(600))
        #expect(try table.sent().map(\.bytes) == [bytes])
        table.finishAll()
        #expect(table.counts == none)
    }

    @Test func `a CANCEL waits for a provisional response and has the branch of its INVITE`() throws {
        var table = TransactionTable(seed: 1)
        let id = try table.send(Transactions.request("INVITE"), on: Transactions.clientFlow(), at: .zero)
        let invite = try #require(try table.sent().first)
        table.cancel(id, reason: try ReasonHeader(parsing: Bytes("SIP;cause=200")), at: .ms(10))
        #expect(table.all().isEmpty)
        table.receive(
            try invite.response(status: 180, reason: "Ringing", tag: Bytes("b")),
            on: Transactions.clientFlow(),
            at: .ms(20)
        )
        let cancel = try #require(try table.sent().last)
        #expect(cancel.method == .cancel)
        for name in [HeaderName.via, .route, .from, .to, .callID] {
            #expect(cancel.values(of: name) == invite.values(of: name))
        }
        #expect(try cancel.cSeq() == CSeq(7, .cancel))
        #expect(cancel.first(.reason) == Bytes("SIP;cause=200"))
        #expect(table.counts.clients == 2)
        table.receive(
            try cancel.response(status: 200, reason: "OK", tag: Bytes("b")),
            on: Transactions.clientFlow(),
            at: .ms(30)
        )
        #expect(table.all().isEmpty, "the user asked for no CANCEL of its own")
        table.finishAll()
        guard case .failure(let failed, .timeout)? = table.all().last else {
            Issue.record("the INVITE has no end")
            return
        }
        #expect(failed == id)
        #expect(table.counts == none)
    }

    @Test func `a received CANCEL gets 200, its INVITE 487, with one tag`() throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow()
        table.receive(try Transactions.received("INVITE"), on: flow, at: .zero)
        let (request, id) = try table.request()
        table.respond(try request.response(status: 180, reason: "Ringing", tag: Bytes("b")), to: id, at: .ms(10))
        _ = table.all()
        table.receive(try Transactions.received("CANCEL"), on: flow, at: .ms(20))
        let outputs = table.all()
        #expect(outputs.count { if case .cancelled(id, _) = $0 { true } else { false } } == 1)
        let sent = try outputs.compactMap { output -> SIPMessage? in
            guard case .send(let bytes, _) = output else { return nil }
            return try SIPMessage(datagram: bytes)
        }
        #expect(sent.map(\.statusCode) == [200, 487])
        #expect(try sent.map { try $0.to()?.tag } == [Bytes("b"), Bytes("b")])
        #expect(!table.respond(try request.response(status: 200, reason: "OK", tag: Bytes("b")), to: id, at: .ms(30)))
        table.receive(try Transactions.received("CANCEL"), on: flow, at: .ms(40))
        #expect(try table.sent().map(\.statusCode) == [200], "a repeat")
        table.receive(try Transactions.received("ACK"), on: flow, at: .ms(50))
        table.finishAll()
        #expect(table.all().isEmpty)
        #expect(table.counts == none)
    }

    @Test func `a CANCEL after the 200 changes nothing, one without INVITE gets 481`() throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow()
        table.receive(try Transactions.received("CANCEL"), on: flow, at: .zero)
        #expect(try table.sent().map(\.statusCode) == [481])
        table.receive(try Transactions.received("INVITE", branch: "z9hG4bK2"), on: flow, at: .zero)
        let (request, id) = try table.request()
        table.respond(try request.response(status: 200, reason: "OK", tag: Bytes("b")), to: id, at: .ms(10))
        _ = table.all()
        table.receive(try Transactions.received("CANCEL", branch: "z9hG4bK2"), on: flow, at: .ms(20))
        #expect(try table.sent().map(\.statusCode) == [200])
    }

    @Test(arguments: [
        ("z9hG4bK1", "z9hG4bK1", "192.0.2.1", true), ("z9hG4bK1", "z9hG4bK1", "192.0.2.9", false),
        ("z9hG4bK1", "z9hG4bK2", "192.0.2.1", false), ("old", "old", "192.0.2.1", true),
        ("z9hG4bK", "z9hG4bK", "192.0.2.1", true), ("old", "older", "192.0.2.1", false),
    ]) func `an ACK finds its INVITE with and without the cookie`(
        branch: String,
        ackBranch: String,
        host: String,
        isFound: Bool
    ) throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow(.tcp)
        table.receive(try Transactions.received("INVITE", branch: branch), on: flow, at: .zero)
        let (request, id) = try table.request()
        table.respond(try request.response(status: 486, reason: "Busy Here", tag: Bytes("b")), to: id, at: .ms(10))
        _ = table.all()
        let ack = try Transactions.received("ACK", branch: ackBranch, toTag: ";tag=b", host: host)
        table.receive(ack, on: flow, at: .ms(20))
        #expect(table.counts.transactions == (isFound ? 0 : 1))
        #expect(table.all().isEmpty == isFound)
    }

    @Test func `without the cookie an ACK must have the tag of our response`() throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow(.tcp)
        table.receive(try Transactions.received("INVITE", branch: "old"), on: flow, at: .zero)
        let (request, id) = try table.request()
        table.respond(try request.response(status: 486, reason: "Busy Here", tag: Bytes("b")), to: id, at: .ms(10))
        table.receive(try Transactions.received("ACK", branch: "old", toTag: ";tag=c"), on: flow, at: .ms(20))
        #expect(table.counts.transactions == 1)
        table.receive(try Transactions.received("ACK", branch: "old", toTag: ";tag=b"), on: flow, at: .ms(20))
        #expect(table.counts.transactions == 0)
    }

    @Test func `without the cookie another CSeq is another request, the same one a repeat`() throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow()
        for cSeq in ["7", "7", "8"] {
            table.receive(try Transactions.received("OPTIONS", branch: "old", cSeq: cSeq), on: flow, at: .zero)
        }
        #expect(table.all().count { if case .request = $0 { true } else { false } } == 2)
    }

    @Test func `the same request by another way gets 482, one within a dialog does not`() throws {
        var table = TransactionTable(seed: 1)
        let flow = Transactions.serverFlow()
        table.receive(try Transactions.received("INVITE"), on: flow, at: .zero)
        #expect(try table.sent().map(\.statusCode) == [100])
        let merged = try Transactions.received("INVITE", branch: "z9hG4bK2")
        table.receive(merged, on: flow, at: .zero)
        let first = try table.sent()
        #expect(first.map(\.statusCode) == [482])
        table.receive(merged, on: flow, at: .zero)
        #expect(try table.sent().map(\.bytes) == first.map(\.bytes), "each repeat gets the same bytes")
        table.receive(try Transactions.received("BYE", branch: "z9hG4bK3", toTag: ";tag=b"), on: flow, at: .zero)
        table.receive(try Transactions.received("BYE", branch: "z9hG4bK4", toTag: ";tag=b"), on: flow, at: .zero)
        #expect(table.counts.transactions == 3)
    }

    @Test func `past the limit of a source comes 503 with Retry-After, others are served`() throws {
        var limits = TransactionTable.Limits()
        limits.perSource = 2
        limits.received = 4
        var table = TransactionTable(seed: 1, limits: limits)
        var answers: [Int?] = []
        for (number, source) in [1, 1, 1, 3, 3, 4].enumerated() {
            let request = try Transactions.received("INVITE", branch: "z9hG4bK\(number)", callID: "c\(number)")
            table.receive(request, on: Transactions.serverFlow(from: UInt32(source)), at: .zero)
            for message in try table.sent() {
                answers.append(message.statusCode)
                #expect((message.first(.retryAfter) != nil) == (message.statusCode == 503))
            }
        }
        #expect(answers == [100, 100, 503, 100, 100, 503])
        #expect(table.counts.sources == 2)
        table.receive(
            try Transactions.received("CANCEL", branch: "z9hG4bK0", callID: "c0"),
            on: Transactions.serverFlow(),
            at: .zero
        )
        #expect(try table.sent().map(\.statusCode) == [200, 487])
    }

    @Test func `a request that has a 100 and no more counts for its source`() throws {
        var limits = TransactionTable.Limits()
        (limits.perSource, limits.received) = (2, 8)
        var table = TransactionTable(seed: 1, limits: limits)
        var answers: [Int?] = []
        for number in 0..<3 {
            if number == 2 { table.handleTimeout(at: .ms(3500)) }
            let request = try Transactions.received("MESSAGE", branch: "z9hG4bK\(number)", callID: "c\(number)")
            table.receive(request, on: Transactions.serverFlow(from: 1), at: .ms(number == 2 ? 3500 : 0))
            answers += try table.sent().map(\.statusCode)
        }
        #expect(answers == [100, 100, 503] && table.counts.sources == 1)
    }

    @Test func `one source may take an eighth of all, and then what is allowed to one`() throws {
        var limits = TransactionTable.Limits()
        (limits.perSource, limits.received) = (2, 80)
        var table = TransactionTable(seed: 1, limits: limits)
        for number in 0..<12 {
            let request = try Transactions.received("INVITE", branch: "z9hG4bK\(number)", callID: "c\(number)")
            table.receive(request, on: Transactions.serverFlow(), at: .zero)
            #expect(try table.sent().map(\.statusCode) == [number < 10 ? 100 : 503])
        }
        let other = try Transactions.received("INVITE", branch: "z9hG4bKo", callID: "o")
        table.receive(other, on: Transactions.serverFlow(from: 3), at: .zero)
        #expect(try table.sent().map(\.statusCode) == [100])
    }

    @Test func `who is answered at once may ask without end, the oldest makes room`() throws {
        var limits = TransactionTable.Limits()
        (limits.perSource, limits.received) = (2, 80)
        var table = TransactionTable(seed: 1, limits: limits)
        let flow = Transactions.serverFlow()
        func ask(_ number: Int) throws -> Int? {
            let request = try Transactions.received("OPTIONS", branch: "z9hG4bK\(number)", callID: "c\(number)")
            table.receive(request, on: flow, at: .zero)
            switch table.poll() {
            case .request(let taken, let id, _):
                table.respond(try taken.response(status: 200, reason: "OK", tag: Bytes("t")), to: id, at: .zero)
                return try table.sent().first?.statusCode
            case .send(let bytes, _): return try SIPMessage(datagram: bytes).statusCode
            default: return nil
            }
        }
        for number in 0..<1000 {
            #expect(try ask(number) == 200)
            #expect(table.counts.servers <= 80 && table.counts.answered <= 160)
        }
        // A repeat of a young one is absorbed; one that made room is a new request.
        let received = table.counts
        #expect(try ask(999) == 200)
        #expect(table.counts == received)
        table.handleTimeout(at: .zero + .seconds(64))
        #expect(table.counts == none)
    }

    @Test(arguments: [("SIP/3.0", "7", 505), ("SIP/2.0", "x", 400)])
    func `a faulty request is answered and makes no transaction`(version: String, cSeq: String, status: Int) throws {
        var table = TransactionTable(seed: 1)
        let text = String(decoding: try Transactions.received("OPTIONS", cSeq: "7").bytes, as: UTF8.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
            line.hasPrefix("CSeq")
                ? "CSeq: \(cSeq) OPTIONS" : line.hasPrefix("OPTIONS") ? "OPTIONS sip:a@b \(version)" : String(line)
        }
        let message = try SIPMessage(datagram: Array(lines.joined(separator: "\r\n").utf8))
        table.receive(message, on: Transactions.serverFlow(), at: .zero)
        #expect(try table.sent().map(\.statusCode) == [status])
        #expect(table.counts == none)
    }

    @Test func `an answer says where its request came from`() throws {
        var table = TransactionTable(seed: 1)
        table.receive(
            try Transactions.received("INVITE", host: "10.0.0.1;rport"),
            on: Transactions.serverFlow(),
            at: .zero
        )
        let via = try #require(try table.sent().first?.topVia())
        #expect(via.received == Bytes("192.0.2.1"))
        #expect(via.responsePort == 5060)
    }

    @Test func `a flow that is gone ends what waits on it, and nothing else`() throws {
        var table = TransactionTable(seed: 1)
        let gone = try table.send(Transactions.request("OPTIONS"), on: Transactions.clientFlow(.tcp), at: .zero)
        _ = try table.send(Transactions.request("OPTIONS"), on: Transactions.clientFlow(.tls), at: .zero)
        _ = table.all()
        table.handleTransportError(on: Transactions.clientFlow(.tcp), at: .zero)
        guard case .failure(gone, .unreachable)? = table.poll() else {
            Issue.record("no failure was told")
            return
        }
        #expect(table.counts.transactions == 1)
    }

    @Test func `a table that many have left gives its room back, and is used as before`() throws {
        var table = TransactionTable(seed: 1)
        let flows = [Transactions.clientFlow(.tcp), Transactions.clientFlow(.tls)]
        for _ in 0..<3 {
            let names = try flows.flatMap { flow in
                try (0..<100).map { _ in try table.send(Transactions.request("INVITE"), on: flow, at: .zero) }
            }
            #expect(table.all().count == 200)
            // The last to leave does not stand at the end.
            for flow in flows.reversed() { table.handleTransportError(on: flow, at: .zero) }
            #expect(table.all().count == 200)
            #expect(table.counts == none && table.slots.indices.isEmpty)
            _ = try table.send(Transactions.request("INVITE"), on: flows[0], at: .zero)
            for name in names { table.cancel(name, at: .zero) }
            #expect(table.counts.transactions == 1, "nobody has the name of one that has left")
            table.handleTransportError(on: flows[0], at: .zero)
            _ = table.all()
        }
    }

    @Test func `an ACK makes no transaction, a response without one is dropped`() throws {
        var table = TransactionTable(seed: 1)
        #expect(throws: SIPError.self) {
            try table.send(Transactions.request("ACK"), on: Transactions.clientFlow(), at: .zero)
        }
        table.receive(try SIPMessage(datagram: Messages.ok), on: Transactions.clientFlow(), at: .zero)
        #expect(table.droppedCount == 1)
        #expect(table.counts == none)
    }

    @Test func `the earliest deadline comes first, whatever is set and taken away`() {
        var queue = DeadlineQueue()
        var times: [Int: Int64] = [:]
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<5000 {
            let slot = Int(generator.next() % 64)
            let time = generator.next() % 4 == 0 ? nil : Int64(generator.next() % 1000)
            queue.set(slot, to: time.map { .ms($0) })
            times[slot] = time
            if queue.first?.time.ms != times.values.min() || queue.count != times.count {
                Issue.record("\(times): \(String(describing: queue.first))")
            }
        }
    }
}
