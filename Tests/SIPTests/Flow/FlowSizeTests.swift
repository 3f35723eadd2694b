import CallBasics
import Testing

@testable import SIP

/// Requests that are too long for a datagram.
@Suite struct FlowSizeTests {
    let target = Target(.udp, Transactions.address(2))

    /// A request that has `count` bytes with the Via that its transaction gives it.
    func request(of count: Int) throws -> SIPMessage {
        var request = try Transactions.request("MESSAGE")
        let via = "Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK01234567890123456789012345678901;rport\r\n"
        let head = count - via.utf8.count - request.bytes.count
        request.setBody(Array(repeating: 65, count: head))
        // The length of the body takes more digits than that of none.
        let excess = request.bytes.count + via.utf8.count - count
        request.setBody(Array(repeating: 65, count: head - excess))
        #expect(request.bytes.count + via.utf8.count == count)
        return request
    }

    func reason(_ table: inout FlowTable, _ count: Int, _ transports: [Flow.Transport] = [.udp, .tcp]) throws
        -> FlowChoice.Reason?
    {
        table.flow(for: try request(of: count), to: target, allowing: transports, at: .zero)?.reason
    }

    func choose(_ table: inout FlowTable, _ request: SIPMessage, _ target: Target, _ now: MediaTime) throws
        -> FlowChoice
    {
        let choice = table.flow(for: request, to: target, allowing: [.udp, .tcp], at: now)
        return try #require(choice)
    }

    @Test func `above 1300 bytes a request goes by TCP where that is allowed`() throws {
        var table = try Flows.table()
        #expect(try reason(&table, 1300) == .target)
        #expect(try reason(&table, 1301) == .size)
        #expect(try reason(&table, 1301, [.udp]) == .oversized)
        #expect(table.all() == ["open 1 -"])
    }

    @Test func `when the MTU is known the limit is 200 bytes less`() throws {
        var table = try Flows.table { $0.mtu = 1280 }
        #expect(try reason(&table, 1080) == .target)
        #expect(try reason(&table, 1081) == .size)
        table = try Flows.table { $0.mtu = 9000 }
        #expect(try reason(&table, 8800) == .target)
    }

    @Test func `a long request to a connection changes nothing`() throws {
        var table = try Flows.table()
        let choice = table.flow(for: try request(of: 5000), to: Flows.target, allowing: [.tcp], at: .zero)
        #expect(choice?.reason == .target)
    }

    @Test func `its Via names TCP, and UDP again when that is refused`() throws {
        var (table, transactions) = (try Flows.table(), TransactionTable(seed: 1))
        let long = try request(of: 2000)
        /// Sends the request by the flow that is chosen now, and gives its Via.
        func attempt(_ now: MediaTime) throws -> (FlowChoice, Via) {
            let choice = try choose(&table, long, target, now)
            _ = try transactions.send(long, on: choice.flow, at: now)
            guard case .send(let bytes, choice.flow)? = transactions.poll() else { throw SIPError(.badRequest, "none") }
            #expect(table.send(bytes, on: choice.flow, at: now) == true)
            return (choice, try #require(try SIPMessage(datagram: bytes).topVia()))
        }
        let (first, firstVia) = try attempt(.zero)
        #expect(first.reason == .size)
        #expect(firstVia.transport == Bytes("TCP"))
        table.handleFailed(first.flow, at: .ms(10))
        #expect(table.all() == ["open 1 -", "died 1 refused"])
        transactions.handleTransportError(on: first.flow, at: .ms(10))
        guard case .failure(_, .unreachable)? = transactions.poll() else {
            Issue.record("the transaction lives on")
            return
        }
        let (second, secondVia) = try attempt(.ms(10))
        #expect(second.reason == .oversized)
        #expect(second.flow.transport == .udp)
        #expect(secondVia.transport == Bytes("UDP"))
        #expect(secondVia.branch != firstVia.branch)
        #expect(table.all() == ["send 0 MESSAGE sip:bob@192.0.2.2 SIP/2.0"])
    }

    @Test func `a refusal is remembered for some minutes, and for its target only`() throws {
        var table = try Flows.table()
        let long = try request(of: 2000)
        func reason(_ target: Target, _ now: MediaTime) -> FlowChoice.Reason? {
            table.flow(for: long, to: target, allowing: [.udp, .tcp], at: now)?.reason
        }
        #expect(reason(target, .zero) == .size)
        table.handleTimeout(at: .ms(10_000))
        #expect(table.counts.refusals == 1)
        #expect(reason(target, .ms(309_999)) == .oversized)
        #expect(reason(Target(.udp, Transactions.address(3)), .ms(10_000)) == .size)
        #expect(reason(target, .ms(310_000)) == .size)
        table.handleTimeout(at: .ms(310_000))
        #expect(table.counts.refusals == 1)
    }

    @Test func `the targets that are remembered are bounded`() throws {
        var table = try Flows.table()
        let long = try request(of: 2000)
        for port in 1...UInt16(FlowTable.refusalCount + 9) {
            let target = Target(.udp, Transactions.address(2, port))
            let choice = try choose(&table, long, target, .zero)
            table.handleFailed(choice.flow, at: .zero)
        }
        #expect(table.counts.refusals == FlowTable.refusalCount)
        _ = table.all()
        table.handleTimeout(at: .ms(300_000))
        #expect(table.counts == FlowCounts())
    }
}
