import CallBasics
import Testing

@testable import SIP

@Suite struct FlowTableTests {
    let none = FlowCounts()
    let target = Flows.target

    @Test func `ten requests at once open one connection, and leave by it in their order`() throws {
        var table = try Flows.table()
        var flows: Set<Flow> = []
        for index in 0..<10 {
            let flow = try table.reach(target, at: .zero)
            flows.insert(flow)
            #expect(table.send(Array("m\(index)".utf8), on: flow, at: .zero) == true)
        }
        let flow = try #require(flows.first)
        #expect(flows.count == 1)
        #expect(table.all() == ["open 1 -"])
        table.handleOpened(flow, at: .ms(20))
        #expect(table.all() == (0..<10).map { "send 1 m\($0)" })
        #expect(table.flow(to: target, at: .ms(30)) == flow)
        #expect(table.all().isEmpty)
        table.handleClosed(flow, at: .ms(40))
        #expect(table.all() == ["died 1 closed"])
        #expect(table.counts == none)
    }

    @Test func `what waits for a connection is bounded, in number and size`() throws {
        var table = try Flows.table {
            $0.queuedMessages = 3
            $0.queuedBytes = 100
        }
        let flow = try table.reach(target, at: .zero)
        let areTaken = (0..<5).map { _ in table.send([1], on: flow, at: .zero) }
        #expect(areTaken == [true, true, true, false, false])
        let other = try table.reach(Target(.tcp, Transactions.address(3)), at: .zero)
        #expect(table.send(Array(repeating: 1, count: 100), on: other, at: .zero) == true)
        #expect(table.send([1], on: other, at: .zero) == false)
    }

    @Test func `a connection that is refused or does not open takes what waits with it`() throws {
        var table = try Flows.table()
        let flow = try table.reach(target, at: .zero)
        #expect(table.send([1], on: flow, at: .zero) == true)
        table.handleFailed(flow, at: .ms(5))
        #expect(table.all() == ["open 1 -", "died 1 refused"])
        #expect(table.counts == none)
        let second = try table.reach(target, at: .ms(10))
        #expect(second != flow)
        #expect(table.deadline == .ms(10_010))
        table.handleTimeout(at: .ms(10_010))
        #expect(table.all() == ["open 2 -", "close 2", "died 2 unopened"])
        #expect(table.counts == none)
        table.handleOpened(second, at: .ms(10_020))
        #expect(table.all() == ["close 2"])
    }

    @Test func `a connection serves one name, and one transport`() throws {
        var table = try Flows.table()
        let address = Transactions.address(2, 5061)
        for name in ["example.com", "example.net", "example.com"] {
            _ = table.flow(to: Target(.tls, address, tlsName: name), at: .zero)
        }
        _ = table.flow(to: Target(.tcp, address), at: .zero)
        #expect(table.all() == ["open 1 example.com", "open 2 example.net", "open 3 -"])
    }

    @Test func `our connections are bounded`() throws {
        var table = try Flows.table { $0.opened = 2 }
        let isMissing = (2...4).map { table.flow(to: Target(.tcp, Transactions.address($0)), at: .zero) == nil }
        #expect(isMissing == [false, false, true])
    }

    @Test func `the own address is of the family of the target`() throws {
        var table = try Flows.table()
        let remote = try #require(SocketAddress(host: "2001:db8::2", port: 5060))
        #expect(table.flow(to: Target(.udp, remote), at: .zero)?.local.description == "[2001:db8::1]:5060")
        #expect(table.flow(to: Target(.udp, Transactions.address(2)), at: .zero)?.local == Transactions.address(1))
        table.setLocalAddresses([Transactions.address(1)], of: .udp)
        #expect(table.flow(to: Target(.udp, remote), at: .zero) == nil)
    }

    @Test func `connections of an address that is gone end, and those of others stay`() throws {
        var table = try Flows.table()
        let ipv6 = try #require(SocketAddress(host: "2001:db8::2", port: 5060))
        for address in [Transactions.address(2), ipv6] {
            let opened = table.flow(to: Target(.tcp, address), at: .zero)
            let flow = try #require(opened)
            table.handleOpened(flow, at: .zero)
        }
        _ = table.all()
        let other = try #require(SocketAddress(host: "2001:db8::1", port: 5062))
        table.setLocalAddresses([Transactions.address(7), other], of: .tcp)
        #expect(table.all() == ["close 1", "died 1 addressGone"])
        #expect(table.counts.flows == 1)
    }

    @Test func `what goes by UDP leaves at once, and needs no entry`() throws {
        var table = try Flows.table()
        let flow = try table.reach(Target(.udp, Transactions.address(2)), at: .zero)
        #expect(table.send(Array("m".utf8), on: flow, at: .zero) == true)
        #expect(table.all() == ["send 0 m"])
        let datagrams = [Messages.request(), Array("\r\n".utf8), Array("\r\n\r\n".utf8), [], [0, 1, 0, 0]]
        for datagram in datagrams {
            table.receive(datagram: datagram, local: flow.local, remote: flow.remote, at: .zero)
        }
        #expect(table.all() == ["message 0 OPTIONS"])
        #expect(table.droppedCount == 4)
        table.handleFailed(flow, at: .zero)
        #expect(table.all() == ["died 0 unreachable"])
        #expect(table.counts == none)
    }

    @Test(arguments: ["192.0.2.9:0", "0.0.0.0:5060", "239.1.1.1:5060", "255.255.255.255:5060"])
    func `a datagram that no answer could go back to is dropped`(remote: String) throws {
        var table = try Flows.table()
        let flow = try table.reach(Target(.udp, Transactions.address(2)), at: .zero)
        let parts = remote.split(separator: ":").map(String.init)
        let source = try #require(UInt16(parts[1]).flatMap { SocketAddress(host: parts[0], port: $0) })
        table.receive(datagram: Messages.request(), local: flow.local, remote: source, at: .zero)
        #expect(table.all().isEmpty)
        #expect(table.droppedCount == 1)
    }

    @Test func `messages of a stream come out, however it is cut`() throws {
        let stream = Messages.invite + Messages.ok
        for cut in stride(from: 0, to: stream.count, by: 7) {
            var (table, flow) = try Flows.open()
            table.receive(Array(stream[..<cut]), on: flow, at: .zero)
            table.receive(Array(stream[cut...]), on: flow, at: .ms(1))
            #expect(table.all() == ["message 1 INVITE", "message 1 200"])
            #expect(table.counts.waitingBytes == 0)
        }
    }

    @Test func `requests within a dialog stay on their flow while it lives`() throws {
        var (table, flow) = try Flows.accepted()
        table.receive(Messages.invite, on: flow, at: .zero)
        #expect(table.isUsable(flow))
        #expect(table.send(Array("BYE sip:a@b SIP/2.0".utf8), on: flow, at: .ms(1)) == true)
        #expect(table.all() == ["message 1 INVITE", "send 1 BYE sip:a@b SIP/2.0"])
        table.handleClosed(flow, at: .ms(2))
        #expect(!table.isUsable(flow))
        #expect(table.send(Array("BYE sip:a@b SIP/2.0".utf8), on: flow, at: .ms(3)) == false)
        #expect(table.all() == ["died 1 closed"])
        #expect(table.counts == none)
    }

    @Test func `a response whose connection has gone opens one to where its request came from`() throws {
        var (table, flow) = try Flows.accepted()
        table.handleClosed(flow, at: .zero)
        _ = table.all()
        let via = "SIP/2.0/TCP pc.example.com:5070;branch=z9hG4bK1;received=192.0.2.9;rport=40000"
        let response = Messages.lines("SIP/2.0 200 OK", "Via: \(via)", "")
        #expect(table.send(response, on: flow, at: .ms(1)) == true)
        guard case .open(let other, nil)? = table.poll() else {
            Issue.record("nothing is opened")
            return
        }
        #expect(other.remote == Transactions.address(9, 5070))
        table.handleOpened(other, at: .ms(2))
        #expect(table.all() == ["send 2 SIP/2.0 200 OK"])
    }

    @Test func `after a request that was not answered new ones get another connection`() throws {
        var (table, flow) = try Flows.open()
        table.noteUnanswered(on: flow, at: .ms(15_000))
        #expect(!table.isUsable(flow))
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .ms(15_000)) == false)
        let other = try table.reach(target, at: .ms(15_000))
        #expect(other != flow)
        table.handleOpened(other, at: .ms(15_000))
        #expect(table.send(Array("SIP/2.0 200 OK".utf8), on: flow, at: .ms(16_000)) == true)
        #expect(table.all() == ["open 2 -", "send 1 SIP/2.0 200 OK"])
        #expect(table.deadline == .ms(47_000))
        table.handleTimeout(at: .ms(47_000))
        #expect(table.all() == ["close 1", "died 1 unanswered"])
        #expect(table.flow(to: target, at: .ms(47_000)) == other)
    }

    @Test func `a connection that something comes by after all is used again, and kept as it was`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.noteUnanswered(on: flow, at: .zero)
        #expect(!table.isUsable(flow))
        table.receive(Messages.ok, on: flow, at: .ms(20_000))
        table.handleTimeout(at: .ms(32_000))
        #expect(table.all() == ["message 1 200", "send 1 CRLFCRLF"])
        #expect(table.isUsable(flow))
        #expect(table.flow(to: target, at: .ms(32_000)) == flow)
    }

    @Test func `a connection ends when it was idle for an hour`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.send([1], on: flow, at: .ms(100_000)) == true)
        table.receive(Messages.ok, on: flow, at: .ms(200_000))
        #expect(table.deadline == .ms(3_800_000))
        _ = table.all()
        table.handleTimeout(at: .ms(3_799_999))
        #expect(table.all().isEmpty)
        table.handleTimeout(at: .ms(3_800_000))
        #expect(table.all() == ["close 1", "died 1 idle"])
        #expect(table.counts == none)
    }

    @Test func `the user closes a connection, and is not told`() throws {
        var (table, flow) = try Flows.open()
        table.close(flow)
        #expect(table.all() == ["close 1"])
        #expect(table.counts == none)
    }
}
