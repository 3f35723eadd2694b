import CallBasics
import Testing

@testable import SIP

@Suite struct FlowKeepAliveTests {
    let none = FlowCounts()
    let lineEnd = Array("\r\n".utf8)

    /// The seconds between what is sent, answered at once by a line end where `isAnswered`.
    func intervals(_ table: inout FlowTable, _ flow: Flow, isAnswered: Bool = false, count: Int = 40) -> [Double] {
        var (times, last) = ([Double](), 0.0)
        while times.count < count, let deadline = table.deadline {
            table.handleTimeout(at: deadline)
            let seconds = Double(deadline.nanoseconds) / 1e9
            for text in table.all() {
                guard text.hasSuffix(flow.transport == .udp ? " CRLF" : " CRLFCRLF") else { return times }
                times.append(seconds - last)
                last = seconds
                if isAnswered { table.receive(lineEnd, on: flow, at: deadline) }
            }
        }
        return times
    }

    /// `nil`: 80 to 100 % of 30 s; else of what the server says, but not below 10 s.
    @Test(arguments: [(nil, 24.0...30.0), (120, 96.0...120.0), (1, 8.0...10.0)] as [(UInt32?, ClosedRange<Double>)])
    func `a connection that is kept is pinged at drawn times, and does not end`(
        flowTimer: UInt32?,
        range: ClosedRange<Double>
    ) throws {
        var (table, flow) = try Flows.open()
        #expect(
            table.keep(flow, KeepAlive.Agreement(flowTimerSeconds: flowTimer, hasOutbound: true), at: .zero) == true
        )
        let times = intervals(&table, flow, isAnswered: true, count: 500)
        #expect(times.count == 500)
        #expect(times.allSatisfy(range.contains))
        #expect(Set(times).count > 400)
        #expect(table.counts.kept == 1)
    }

    @Test(arguments: [(nil, 24.0...29.0), (120, 24.0...29.0), (20, 16.0...20.0)] as [(UInt32?, ClosedRange<Double>)])
    func `a UDP flow that is kept sends line ends at drawn times`(
        flowTimer: UInt32?,
        range: ClosedRange<Double>
    ) throws {
        var table = try Flows.table()
        let flow = try table.reach(Target(.udp, Transactions.address(2)), at: .zero)
        #expect(
            table.keep(flow, KeepAlive.Agreement(flowTimerSeconds: flowTimer, hasOutbound: true), at: .zero) == true
        )
        let times = intervals(&table, flow, count: 500)
        #expect(times.count == 500)
        #expect(times.allSatisfy(range.contains))
        #expect(Set(times).count > 400)
        table.release(flow, at: .ms(20_000_000))
        #expect(table.all().isEmpty)
        #expect(table.counts == none)
    }

    @Test func `the seed determines the times`() throws {
        let runs = try ([7, 7, 8] as [UInt64]).map { seed in
            var (table, flow) = try Flows.open(seed: seed)
            #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
            return intervals(&table, flow)
        }
        #expect(runs[0] == runs[1])
        #expect(runs[0] != runs[2])
    }

    @Test func `a flow whose registrar has outbound dies 10 s after a ping without pong`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(hasOutbound: true), at: .zero) == true)
        let events = table.run(until: .ms(100_000))
        #expect(events.map(\.text) == ["send 1 CRLFCRLF", "close 1", "died 1 noPong"])
        #expect(abs(events[1].seconds - events[0].seconds - 10) < 0.001)
        #expect(table.counts == none)
    }

    @Test func `a peer that never pongs and agreed to nothing lives`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        #expect(table.run(until: .ms(3_600_000)).allSatisfy { $0.text == "send 1 CRLFCRLF" })
        #expect(table.counts.flows == 1)
    }

    @Test func `a peer that has ponged once has to go on, also after the next registration`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        let first = try #require(table.deadline)
        table.handleTimeout(at: first)
        table.receive(lineEnd, on: flow, at: first + .milliseconds(50))
        #expect(table.all() == ["send 1 CRLFCRLF"])
        #expect(table.keep(flow, KeepAlive.Agreement(), at: first + .seconds(1)) == true)
        #expect(table.run(until: .ms(100_000)).map(\.text) == ["send 1 CRLFCRLF", "close 1", "died 1 noPong"])
    }

    @Test func `a ping is answered, and is no pong`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.handleTimeout(at: try #require(table.deadline))
        table.receive(lineEnd + lineEnd, on: flow, at: .ms(30_001))
        #expect(table.all() == ["send 1 CRLFCRLF", "send 1 CRLF"])
        // Were it taken for a pong, the next ping would need one.
        #expect(table.run(until: .ms(200_000)).allSatisfy { $0.text == "send 1 CRLFCRLF" })
        table.receive(lineEnd + lineEnd + lineEnd, on: flow, at: .ms(200_001))
        #expect(table.all() == ["send 1 CRLF"])
        #expect(table.run(until: .ms(300_000)).last?.text == "died 1 noPong")
    }

    @Test func `a ping that comes in halves is answered once`() throws {
        var (table, flow) = try Flows.open()
        table.receive(lineEnd, on: flow, at: .ms(1))
        #expect(table.all().isEmpty)
        table.receive(lineEnd, on: flow, at: .ms(2))
        table.receive(lineEnd, on: flow, at: .ms(3))
        #expect(table.all() == ["send 1 CRLF"])
    }

    @Test func `a line end without a ping before it says nothing`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.receive(lineEnd, on: flow, at: .ms(1))
        #expect(table.run(until: .ms(200_000)).allSatisfy { $0.text == "send 1 CRLFCRLF" })
    }

    @Test func `a connection that is released ends when it is idle`() throws {
        var (table, flow) = try Flows.open()
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.release(flow, at: .ms(10_000))
        #expect(table.deadline == .ms(3_610_000))
        #expect(table.counts.kept == 0)
        #expect(table.run(until: .ms(4_000_000)).map(\.text) == ["close 1", "died 1 idle"])
    }

    @Test func `a kept UDP flow dies with its own address`() throws {
        var table = try Flows.table()
        let flow = try table.reach(Target(.udp, Transactions.address(2)), at: .zero)
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == true)
        table.setLocalAddresses([Transactions.address(7)], of: .udp)
        #expect(table.all() == ["died 0 addressGone"])
        #expect(!table.isUsable(flow))
        #expect(table.keep(flow, KeepAlive.Agreement(), at: .zero) == false)
        #expect(table.counts == none)
    }

    @Test func `UDP flows that are kept are bounded`() throws {
        var table = try Flows.table { $0.keptFlows = 2 }
        let kept = try (UInt32(2)...4).map { last in
            let flow = try table.reach(Target(.udp, Transactions.address(last)), at: .zero)
            return table.keep(flow, KeepAlive.Agreement(), at: .zero)
        }
        #expect(kept == [true, true, false])
    }
}
