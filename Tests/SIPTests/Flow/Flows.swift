import CallBasics
import Testing

@testable import SIP

/// A table with own addresses 192.0.2.1 and 2001:db8::1, and what comes out of it.
enum Flows {
    static let target = Target(.tcp, Transactions.address(2))

    static func table(
        seed: UInt64 = 1,
        _ change: (inout FlowLimits) -> Void = { _ in }
    ) throws -> FlowTable {
        var limits = FlowLimits()
        change(&limits)
        var table = FlowTable(seed: seed, limits: limits)
        let ipv6 = try #require(SocketAddress(host: "2001:db8::1", port: 5060))
        for transport in Flow.Transport.allCases {
            table.setLocalAddresses([Transactions.address(1), ipv6], of: transport)
        }
        return table
    }

    /// A table with one open connection to the target.
    static func open(_ target: Target = Flows.target, seed: UInt64 = 1) throws -> (FlowTable, Flow) {
        var table = try table(seed: seed)
        let flow = try table.reach(target, at: .zero)
        table.handleOpened(flow, at: .zero)
        #expect(table.all() == ["open \(flow.number) \(target.tlsName ?? "-")"])
        return (table, flow)
    }

    /// A table with one connection that 192.0.2.9 made.
    static func accepted() throws -> (FlowTable, Flow) {
        var table = try table()
        let remote = Transactions.address(9, 40_000)
        let flow = try table.admit(from: remote, at: .zero)
        return (table, flow)
    }
}

extension FlowTable {
    /// The flow to a target, which has to be there.
    mutating func reach(_ target: Target, at now: MediaTime) throws -> Flow {
        let flow = flow(to: target, at: now)
        return try #require(flow)
    }

    /// A connection that somebody made to us, which has to be taken.
    mutating func admit(from remote: SocketAddress, at now: MediaTime) throws -> Flow {
        let flow = accept(.tcp, local: Transactions.address(1), remote: remote, at: now)
        return try #require(flow)
    }

    /// All that comes out, as text: what it is, the number of the flow, and what is sent, received or why it died.
    mutating func all() -> [String] {
        var list: [String] = []
        while let output = poll() {
            switch output {
            case .open(let flow, let name): list.append("open \(flow.number) \(name ?? "-")")
            case .send(let bytes, let flow): list.append("send \(flow.number) \(Self.text(bytes))")
            case .close(let flow): list.append("close \(flow.number)")
            case .message(let message, let flow):
                list.append("message \(flow.number) \(message.method?.name ?? "\(message.statusCode ?? 0)")")
            case .died(let flow, let end, _): list.append("died \(flow.number) \(end)")
            }
        }
        return list
    }

    private static func text(_ bytes: [UInt8]) -> String {
        switch bytes {
        case Array("\r\n".utf8): "CRLF"
        case Array("\r\n\r\n".utf8): "CRLFCRLF"
        default: String(bytes[...].text.prefix { $0 != "\r\n" })
        }
    }

    /// Does what is due up to a time, each thing at its time, and gives what came out with the seconds.
    mutating func run(until end: MediaTime) -> [(seconds: Double, text: String)] {
        var list: [(Double, String)] = []
        while let deadline, deadline <= end {
            handleTimeout(at: deadline)
            list += all().map { (Double(deadline.nanoseconds) / 1e9, $0) }
        }
        return list
    }
}
