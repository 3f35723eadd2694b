import CallBasics
import SIP
import Testing

@testable import media_tool

/// Messages to a peer, in virtual time.
@Suite struct TortureProbeTests {
    private let local = SocketAddress(ipv4: 0xC000_0201, port: 5060)
    private let peer = SocketAddress(ipv4: 0xC000_0202, port: 5060)

    private static func message(_ callID: String) -> [UInt8] {
        let lines = [
            "INFO sip:a@b SIP/2.0", "Via: SIP/2.0/UDP x;branch=z9hG4bK1", "From: <sip:b@c>;tag=1", "To: <sip:a@b>",
        ]
        return Array((lines + ["Call-ID: \(callID)", "CSeq: 1 INFO", "", ""]).joined(separator: "\r\n").utf8)
    }

    /// Sends messages to a peer that answers as it likes; nil is no answer.
    private func run(_ messages: [[UInt8]], _ answer: (SIPMessage) -> Int?) throws -> (
        events: [TortureProbe.Event], end: MediaTime
    ) {
        let items = messages.map { TortureProbe.Item($0, isWaitedFor: true) }
        var probe = TortureProbe(items, to: peer, by: .udp, patience: .milliseconds(400))
        var (events, now): ([TortureProbe.Event], MediaTime) = ([], .zero)
        probe.setLocalAddresses([local], of: .udp, at: now)
        probe.begin(at: now)
        while true {
            while let output = probe.poll() {
                switch output {
                case .event(let event): events.append(event)
                case .send(let bytes, let flow):
                    let request = try SIPMessage(datagram: bytes)
                    guard let status = answer(request) else { break }
                    let response = try request.response(status: status, reason: "", tag: Bytes("t"))
                    now += .milliseconds(10)
                    probe.handle(.datagram(response.bytes, local: flow.local, remote: flow.remote), at: now)
                default: Issue.record("\(output)")
                }
            }
            guard let deadline = probe.deadline else { return (events, now) }
            now = max(now, deadline)
            probe.handle(.timeout, at: now)
        }
    }

    @Test func `each answer is told with its time, and no answer, too`() throws {
        let (events, end) = try run([Self.message("1"), Self.message("2")]) { request in
            if request.method == .options { return 200 }
            return request.callID?.text == "1" ? 405 : nil
        }
        #expect(events.map(\.index) == [-1, 0, 1])
        #expect(events.map(\.status) == [nil, 405, nil])
        #expect(events.map(\.isAlive) == [true, true, true])
        #expect(events[1].delay == .milliseconds(10))
        // Four answers, and the patience that the second message took.
        #expect(end == .zero + .milliseconds(440))
    }

    @Test func `a peer that answers nothing any more is not alive`() throws {
        var isDead = false
        let (events, _) = try run([Self.message("1"), Self.message("2")]) { request in
            if request.callID?.text == "2" { isDead = true }
            return isDead ? nil : 200
        }
        #expect(events.map(\.isAlive) == [true, true, false])
    }

    @Test func `a provisional response is no answer`() throws {
        let (events, _) = try run([Self.message("1")]) { request in
            if request.method != .options { return 100 }
            return 200
        }
        #expect(events.map(\.status) == [nil, nil])
    }
}
