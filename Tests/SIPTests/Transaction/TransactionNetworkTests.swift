import CallBasics
import TestSupport
import Testing

@testable import SIP

/// Two tables and a network between them that loses, doubles and delays by a seed.
struct TransactionNetwork {
    var client: TransactionTable
    var server: TransactionTable
    var generator: SeededGenerator
    let transport: Flow.Transport
    /// How many in a hundred are lost, and how many are doubled.
    let loss: UInt64
    var now = MediaTime.zero
    /// What is under way, in no order.
    var packets: [(time: MediaTime, isToServer: Bool, bytes: [UInt8])] = []
    var finals: [TransactionID: [Int]] = [:]
    var failures: [TransactionID: Int] = [:]
    var requestCount = 0
    var trace: [[UInt8]] = []

    init(seed: UInt64, transport: Flow.Transport, loss: UInt64) {
        client = TransactionTable(seed: seed)
        server = TransactionTable(seed: seed ^ 0xFFFF)
        generator = SeededGenerator(seed: seed)
        (self.transport, self.loss) = (transport, loss)
    }

    mutating func carry(_ bytes: [UInt8], toServer: Bool) {
        trace.append(bytes)
        let chance = transport.isReliable ? 99 : generator.next() % 100
        guard transport.isReliable || chance >= loss else { return }
        let copies = !transport.isReliable && chance < 2 * loss ? 2 : 1
        for _ in 0..<copies {
            let delay = transport.isReliable ? 20 : 10 + generator.next() % 200
            packets.append((now + .milliseconds(Int64(delay)), toServer, bytes))
        }
    }

    /// Does what both tables ask for; each request gets `status`.
    mutating func settle(answer status: Int) throws {
        while let output = client.poll() {
            switch output {
            case .send(let bytes, _): carry(bytes, toServer: true)
            case .response(let response, let id, _):
                if let code = response.statusCode, code >= 200 { finals[id, default: []].append(code) }
            case .failure(let id, _): failures[id, default: 0] += 1
            case .request, .acknowledgement, .cancelled: Issue.record("a client got a request")
            }
        }
        while let output = server.poll() {
            switch output {
            case .send(let bytes, _): carry(bytes, toServer: false)
            case .request(let request, let id, _):
                requestCount += 1
                let response = try request.response(status: status, reason: "Answer", tag: Bytes("b"))
                server.respond(response, to: id, at: now)
            case .response: Issue.record("a server got a response")
            case .acknowledgement, .cancelled, .failure: break
            }
        }
        if client.counts.outputs + server.counts.outputs > 0 { try settle(answer: status) }
    }

    /// Lets time pass until nothing is under way and nothing waits.
    mutating func run(answer status: Int) throws {
        try settle(answer: status)
        while true {
            let times = [client.deadline, server.deadline, packets.map(\.time).min()].compactMap { $0 }
            guard let next = times.min() else { return }
            now = max(now, next)
            let due = packets.filter { $0.time <= now }
            packets.removeAll { $0.time <= now }
            for packet in due {
                let message = try SIPMessage(datagram: packet.bytes)
                if packet.isToServer {
                    server.receive(message, on: Transactions.serverFlow(transport), at: now)
                } else {
                    client.receive(message, on: Transactions.clientFlow(transport), at: now)
                }
            }
            client.handleTimeout(at: now)
            server.handleTimeout(at: now)
            try settle(answer: status)
        }
    }
}

@Suite struct TransactionNetworkTests {
    static let cases: [(UInt64, String, Int, Flow.Transport)] = (1...5).flatMap { seed in
        [
            (seed, "INVITE", 486, Flow.Transport.udp), (seed, "OPTIONS", 200, .udp), (seed, "INVITE", 486, .tcp),
            (seed, "MESSAGE", 404, .tls),
        ]
    }

    static func world(seed: UInt64, _ method: String, _ status: Int, _ transport: Flow.Transport, loss: UInt64) throws
        -> TransactionNetwork
    {
        var world = TransactionNetwork(seed: seed, transport: transport, loss: loss)
        for number in 0..<50 {
            let request = try Transactions.request(method, callID: "c\(number)")
            _ = try world.client.send(request, on: Transactions.clientFlow(transport), at: .zero)
        }
        try world.run(answer: status)
        return world
    }

    @Test(arguments: cases) func `each request ends once in spite of losses, repeats and reordering`(
        seed: UInt64,
        method: String,
        status: Int,
        transport: Flow.Transport
    ) throws {
        let world = try Self.world(seed: seed, method, status, transport, loss: 20)
        #expect(world.finals.count + world.failures.count == 50)
        #expect(world.finals.values.count { $0 != [status] } == 0)
        #expect(world.failures.values.count { $0 != 1 } == 0)
        #expect(world.requestCount <= 50, "no repeat is taken for a new request")
        #expect(world.finals.count >= 45)
        #expect(world.client.counts == TransactionCounts())
        #expect(world.server.counts == TransactionCounts())
    }

    @Test func `an INVITE that is accepted gives every 2xx`() throws {
        let world = try Self.world(seed: 9, "INVITE", 200, .tcp, loss: 0)
        #expect(world.finals.values.count { $0 == [200] } == 50)
        #expect(world.client.counts == TransactionCounts())
        #expect(world.server.counts == TransactionCounts())
    }

    @Test func `the same seed gives the same bytes`() throws {
        let one = try Self.world(seed: 4, "INVITE", 486, .udp, loss: 30)
        let other = try Self.world(seed: 4, "INVITE", 486, .udp, loss: 30)
        let third = try Self.world(seed: 5, "INVITE", 486, .udp, loss: 30)
        #expect(one.trace == other.trace)
        #expect(one.trace != third.trace)
    }

    @Test func `when all is lost each request times out at 32 s`() throws {
        let world = try Self.world(seed: 1, "INVITE", 486, .udp, loss: 100)
        #expect(world.failures.count == 50)
        #expect(world.now == .ms(32000))
        #expect(world.trace.count == 50 * 7)
    }

    /// Each takes a ms and a half in a build without optimisation.
    static let manyCount = thorough(20_000, quick: 3000)

    @Test func `very many transactions leave nothing, in as much memory as a few take`() throws {
        var client = TransactionTable(seed: 1)
        var server = TransactionTable(seed: 2)
        var now = MediaTime.zero
        var most = 0
        for number in 0..<Self.manyCount {
            now += .milliseconds(100)
            client.handleTimeout(at: now)
            server.handleTimeout(at: now)
            let method = number % 2 == 0 ? "INVITE" : "OPTIONS"
            let request = try Transactions.request(method, callID: "c\(number)")
            _ = try client.send(request, on: Transactions.clientFlow(), at: now)
            var isMoving = true
            while isMoving {
                isMoving = false
                for output in client.all() {
                    guard case .send(let bytes, _) = output else { continue }
                    server.receive(try SIPMessage(datagram: bytes), on: Transactions.serverFlow(), at: now)
                }
                for output in server.all() {
                    isMoving = true
                    switch output {
                    case .send(let bytes, _):
                        client.receive(try SIPMessage(datagram: bytes), on: Transactions.clientFlow(), at: now)
                    case .request(let request, let id, _):
                        let response = try request.response(status: 486, reason: "Busy Here", tag: Bytes("b"))
                        server.respond(response, to: id, at: now)
                    case .acknowledgement, .cancelled, .response, .failure: Issue.record("unexpected \(output)")
                    }
                }
            }
            most = max(most, client.counts.transactions, server.counts.transactions)
        }
        #expect(most < 400, "32 s of one transaction each 100 ms, and not more")
        #expect(client.slots.indices.count < 400)
        #expect(server.slots.indices.count < 400)
        client.finishAll()
        server.finishAll()
        #expect(client.all().isEmpty)
        #expect(server.all().isEmpty)
        #expect(client.counts == TransactionCounts())
        #expect(server.counts == TransactionCounts())
    }

    @Test(arguments: [Messages.invite, Messages.ok, Messages.request("CANCEL sip:a@b SIP/2.0", method: "CANCEL")])
    func `whatever comes, nothing traps and everything ends`(seed: [UInt8]) throws {
        var table = TransactionTable(seed: 1)
        var generator = SeededGenerator(seed: 5)
        var now = MediaTime.zero
        let flow = Transactions.serverFlow()
        for index in 0..<4000 {
            now += .milliseconds(Int64(generator.next() % 300))
            table.handleTimeout(at: now)
            var bytes = seed
            if index % 3 == 0 { bytes.removeLast(index / 3 % bytes.count) }
            for _ in 0..<(generator.next() % 4) where !bytes.isEmpty {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            guard let message = try? SIPMessage(datagram: bytes) else { continue }
            table.receive(message, on: flow, at: now)
            for output in table.all() {
                switch output {
                case .send(let bytes, _): _ = try SIPMessage(datagram: bytes)
                case .request(let request, let id, _):
                    let status = 100 + Int(generator.next() % 600)
                    if let response = try? request.response(status: status, reason: "", tag: Bytes("b")) {
                        table.respond(response, to: id, at: now)
                    }
                    // Whoever is asked answers in the end.
                    let end = try request.response(status: 500, reason: "", tag: Bytes("b"))
                    table.respond(end, to: id, at: now)
                case .acknowledgement, .cancelled, .response, .failure: break
                }
            }
        }
        table.finishAll()
        _ = table.all()
        #expect(table.counts == TransactionCounts())
    }
}
