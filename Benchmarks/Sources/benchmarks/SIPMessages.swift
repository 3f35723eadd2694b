import CAllocationCounter
import CMeasure
import EngineBenchmarks

@testable import SIP

/// What it costs to read and to write messages, beside libre.
enum SIPMessages {
    private static let rounds = 4000

    static func measure(_ options: Options) throws -> [Figure] {
        let datagrams = try messages()
        let read = try datagrams.map { try SIPMessage(datagram: $0) }
        var (indexed, typed, written) = (0.0, 0.0, 0.0)
        var libre: Double?
        for _ in 0..<options.repetitions {
            indexed = max(
                indexed,
                try perSecond(datagrams.count) {
                    for datagram in datagrams { _ = try SIPMessage(datagram: datagram) }
                }
            )
            typed = max(
                typed,
                try perSecond(datagrams.count) {
                    for datagram in datagrams {
                        let message = try SIPMessage(datagram: datagram)
                        _ = (try message.topVia(), try message.from(), try message.to(), try message.cSeq())
                        _ = (message.callID, try message.contacts())
                    }
                }
            )
            written = max(written, try perSecond(datagrams.count) { for message in read { _ = message.bytes } })
            if let figure = libreMessages(datagrams) { libre = max(libre ?? 0, figure) }
        }
        var figures = [
            Figure("sip-messages: headers found", indexed, "/s", .atLeast(400_000)),
            Figure("sip-messages: and what tells the dialog read", typed, "/s", .atLeast(250_000)),
            Figure("sip-messages: written", written, "/s", .atLeast(700_000)),
        ]
        if let libre {
            figures.append(
                Figure(
                    "sip-messages: read / libre's",
                    typed / libre,
                    "",
                    .atLeast(0.8),
                    note: "libre \(Report.number(libre))/s"
                )
            )
        }
        allocation_counter_begin()
        for datagram in datagrams { _ = try SIPMessage(datagram: datagram) }
        let counts = allocation_counter_end()
        let each = Double(counts.allocations) / Double(datagrams.count)
        figures.append(Figure("sip-messages: allocations of one that is found", each, "", .atMost(3)))
        return figures
    }

    /// The messages of a registration and of a call, both ways.
    private static func messages() throws -> [[UInt8]] {
        var registrar = try SIPPair<SIPServer>.registrar(users: 1)
        registrar.keepsSent = true
        try registrar.register(0)
        var phones = try SIPPair<UserAgent>.phones()
        phones.keepsSent = true
        let call = try phones.call()
        phones.withPhone { agent, now in agent.hangUp(call, at: now) }
        return registrar.sent + phones.sent
    }

    private static func perSecond(_ count: Int, _ body: () throws -> Void) throws -> Double {
        let start = measure_thread_cpu()
        for _ in 0..<rounds { try body() }
        return Double(count * rounds) * 1e9 / Double(measure_thread_cpu() - start)
    }

    private static func libreMessages(_ datagrams: [[UInt8]]) -> Double? {
        let time = measure_libre_messages(
            datagrams.flatMap(\.self),
            datagrams.map { Int32($0.count) },
            Int32(datagrams.count),
            Int32(rounds)
        )
        return time > 0 ? Double(datagrams.count * rounds) * 1e9 / Double(time) : nil
    }
}
