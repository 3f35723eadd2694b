import CallBasics
import Testing

@testable import SIP

/// Peers that are slow, that lie, or that come in masses.
@Suite struct FlowHostileTests {
    let none = FlowCounts()

    @Test func `a message that comes byte by byte each second is not waited for`() throws {
        var (table, flow) = try Flows.accepted()
        var log: [String] = []
        table.receive(Messages.request(), on: flow, at: .zero)
        for (second, byte) in Messages.invite.enumerated() {
            let now = MediaTime.ms(Int64(second) * 1000)
            table.handleTimeout(at: now)
            table.receive([byte], on: flow, at: now)
            log += table.all()
        }
        #expect(log == ["message 1 OPTIONS", "close 1", "died 1 slow"])
        #expect(table.droppedCount == Messages.invite.count - 32)
        #expect(table.counts == none)
    }

    @Test func `half a message is not waited for, by a connection of ours either`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.receive(Messages.ok + Messages.invite.prefix(100), on: flow, at: .ms(5000))
        #expect(table.counts.waitingBytes == 100)
        #expect(table.all() == ["message 1 200"])
        #expect(table.run(until: .ms(100_000)).filter { $0.text != "send 1 CRLFCRLF" }.map(\.seconds) == [37, 37])
        #expect(table.counts == none)
    }

    @Test func `a slow message that comes to its end in time is taken`() throws {
        var (table, flow) = try Flows.accepted()
        table.receive(Array(Messages.invite.prefix(100)), on: flow, at: .zero)
        table.handleTimeout(at: .ms(31_000))
        table.receive(Array(Messages.invite.dropFirst(100)) + Messages.invite.prefix(9), on: flow, at: .ms(31_000))
        table.handleTimeout(at: .ms(62_999))
        #expect(table.all() == ["message 1 INVITE"])
        table.handleTimeout(at: .ms(63_000))
        #expect(table.all() == ["close 1", "died 1 slow"])
    }

    @Test func `a connection that brings no message ends, pings or not`() throws {
        var (table, flow) = try Flows.accepted()
        for second in 0..<40 {
            table.handleTimeout(at: .ms(Int64(second) * 1000))
            table.receive(Array("\r\n\r\n".utf8), on: flow, at: .ms(Int64(second) * 1000))
        }
        #expect(table.all() == Array(repeating: "send 1 CRLF", count: 32) + ["close 1", "died 1 idle"])
        #expect(table.counts == none)
    }

    @Test func `ten thousand connections of one address are refused but for some`() throws {
        var table = try Flows.table()
        let local = Transactions.address(1)
        for port in 1...UInt16(10_000) {
            _ = table.accept(.tcp, local: local, remote: Transactions.address(9, port), at: .zero)
        }
        #expect(table.counts.accepted == 64)
        #expect(table.droppedCount == 10_000 - 64)
        #expect(table.accept(.tcp, local: local, remote: Transactions.address(8), at: .zero) != nil)
        #expect(table.run(until: .ms(32_000)).count == 2 * 65)
        #expect(table.counts == none)
    }

    @Test func `ten thousand connections of ten thousand addresses are bounded, and leave`() throws {
        var table = try Flows.table()
        for last in 1...UInt32(10_000) {
            let remote = SocketAddress(ipv4: 0x0A00_0000 | last, port: 5060)
            _ = table.accept(.tls, local: Transactions.address(1), remote: remote, at: .zero)
        }
        #expect(table.counts.accepted == 4096)
        #expect(table.counts.sources == 4096)
        #expect(table.flow(to: Flows.target, at: .zero) != nil)
        _ = table.all()
        table.handleTimeout(at: .ms(32_000))
        #expect(table.counts.accepted == 0)
        #expect(table.counts.sources == 0)
    }

    @Test func `parts of messages of all connections are bounded in sum`() throws {
        var table = try Flows.table { $0.waitingBytes = 100_000 }
        let part = Array("OPTIONS sip:a@b SIP/2.0\r\nX: ".utf8) + Array(repeating: 65, count: 30_000)
        var flows: [Flow] = []
        for port in 1...UInt16(5) {
            let remote = Transactions.address(9, port)
            flows.append(try table.admit(from: remote, at: .zero))
        }
        for flow in flows { table.receive(part, on: flow, at: .zero) }
        #expect(table.all() == ["close 4", "died 4 overloaded", "close 5", "died 5 overloaded"])
        #expect(table.counts.waitingBytes == 3 * part.count)
        for flow in flows { table.handleClosed(flow, at: .ms(1)) }
        #expect(table.counts.waitingBytes == 0)
    }

    @Test func `a thousand pings at once get one answer`() throws {
        var (table, flow) = try Flows.accepted()
        table.receive(Array(repeating: Array("\r\n\r\n".utf8), count: 1000).flatMap(\.self), on: flow, at: .zero)
        #expect(table.all() == ["send 1 CRLF"])
    }

    @Test func `what is not SIP closes the connection`() throws {
        var (table, flow) = try Flows.accepted()
        table.receive(Array("GET / HTTP/1.1\r\n\r\n".utf8), on: flow, at: .zero)
        #expect(table.all() == ["close 1", "died 1 faulty"])
        #expect(table.counts == none)
    }

    @Test func `a message whose end nobody knows is answered before the connection closes`() throws {
        for isAnswered in [true, false] {
            var (table, flow) = try Flows.open()
            let lines = Messages.lines("X: a", "Content-Length: -1", "")
            table.receive(Messages.request().dropLast(2) + lines + Messages.ok, on: flow, at: .zero)
            #expect(table.all() == ["message 1 OPTIONS"])
            #expect(!table.isUsable(flow))
            #expect(table.flow(to: Flows.target, at: .zero) != flow)
            if isAnswered {
                #expect(table.send(Array("SIP/2.0 400 Bad Request".utf8), on: flow, at: .ms(1)) == true)
                #expect(table.all() == ["open 2 -", "send 1 SIP/2.0 400 Bad Request", "close 1", "died 1 faulty"])
            } else {
                table.handleTimeout(at: .ms(1000))
                #expect(table.all() == ["open 2 -", "close 1", "died 1 faulty"])
            }
            #expect(table.counts.flows == 1)
        }
    }

    @Test func `requests that came whole before what is not SIP are answered before the connection closes`() throws {
        var (table, flow) = try Flows.accepted()
        let other = String(decoding: Messages.request(), as: UTF8.self).replacing("c1", with: "c2")
        let requests = Messages.request() + Array(other.utf8)
        table.receive(requests + Array("GET / HTTP/1.1\r\n\r\n".utf8), on: flow, at: .zero)
        #expect(table.all() == ["message 1 OPTIONS", "message 1 OPTIONS"])
        for _ in 0..<2 { #expect(table.send(Array("SIP/2.0 200 OK".utf8), on: flow, at: .ms(1)) == true) }
        #expect(table.all() == ["send 1 SIP/2.0 200 OK", "send 1 SIP/2.0 200 OK"])
        // Nothing is read any more.
        table.receive(Messages.request(), on: flow, at: .ms(2))
        #expect(table.all() == [])
        table.handleTimeout(at: .ms(1000))
        #expect(table.all() == ["close 1", "died 1 faulty"])
        #expect(table.counts == none)
    }

    @Test func `random bytes break nothing, and leave nothing`() throws {
        for seed in 0..<200 {
            var generator = SeededGenerator(seed: UInt64(seed))
            var (table, flow) = try Flows.accepted()
            var now = MediaTime.zero
            for _ in 0..<20 {
                var stream = [Messages.invite, Messages.ok, Array("\r\n\r\n".utf8)][Int(generator.next() % 3)]
                if generator.next() % 4 == 0 {
                    stream[Int(generator.next() % 2)] = UInt8(truncatingIfNeeded: generator.next())
                }
                table.receive(Array(stream.prefix(Int(generator.next() % 900))), on: flow, at: now)
                now += .seconds(Int64(generator.next() % 20))
                table.handleTimeout(at: now)
            }
            _ = table.all()
            table.handleTimeout(at: now + .seconds(3601))
            _ = table.all()
            #expect(table.counts == none)
        }
    }
}
