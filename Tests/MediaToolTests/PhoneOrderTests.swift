import CallCore
import Testing

@testable import media_tool

@Suite struct PhoneOrderTests {
    @Test func `words and actions say the same`() throws {
        let pairs: [(String, String, PhoneOrder.Kind, Int?)] = [
            (
                "call sip:bob@example.test", #"{"action":"start","to":"sip:bob@example.test"}"#,
                .start(to: "sip:bob@example.test"), nil
            ),
            ("answer 2", #"{"action":"answer","call":2}"#, .answer, 2),
            ("END", #"{"action":"end"}"#, .end, nil),
            ("  hold   1 ", #"{"action":"setHeld","held":true,"call":1}"#, .setHeld(true), 1),
            ("resume", #"{"action":"setHeld","held":false}"#, .setHeld(false), nil),
            ("mute", #"{"action":"setMuted","muted":true}"#, .setMuted(true), nil),
            ("unmute 3", #"{"action":"setMuted","muted":false,"call":3}"#, .setMuted(false), 3),
            ("keys 12,# 4", #"{"action":"playDTMF","digits":"12,#","call":4}"#, .playDTMF("12,#"), 4),
            ("transfer sip:c@d", #"{"action":"transfer","to":"sip:c@d"}"#, .transfer(to: "sip:c@d"), nil),
            ("transfer 2 1", #"{"action":"transfer","with":2,"call":1}"#, .handOver(to: 2), 1),
            ("follow", #"{"action":"acceptTransfer"}"#, .follow(true), nil),
            ("stay 2", #"{"action":"refuseTransfer","call":2}"#, .follow(false), 2),
            (
                "text sip:c@d good morning", #"{"action":"text","to":"sip:c@d","text":"good morning"}"#,
                .text("good morning", to: "sip:c@d"), nil
            ),
            (
                "queue sip:c@d good night", #"{"action":"queue","to":"sip:c@d","text":"good night"}"#,
                .queue("good night", to: "sip:c@d"), nil
            ),
            ("swap", #"{"action":"swap"}"#, .swap, nil), ("calls", #"{"action":"calls"}"#, .calls, nil),
            ("devices", #"{"action":"devices"}"#, .devices, nil),
            ("device null", #"{"action":"device","name":"null"}"#, .device("null"), nil),
            ("volume -6", #"{"action":"volume","db":-6}"#, .volume(-6), nil),
            (
                #"push {"aps":{"call-id":"a"},"from-uri":"sip:b@c"}"#,
                #"{"action":"push","payload":{"call_id":"a","aps":{"from-uri":"sip:b@c"}}}"#,
                .push(PushPayload(callID: "a", from: "sip:b@c")), nil
            ),
            (
                "network off", #"{"action":"setNetworkReachable","reachable":false}"#, .network(isReachable: false), nil
            ),
            ("quit", #"{"action":"quit"}"#, .quit, nil),
        ]
        for (words, json, kind, call) in pairs {
            for line in [words, json] {
                let order = try #require(try PhoneOrder(parsing: line), "\(line)")
                #expect(order.kind == kind && order.call == call && order.id == nil, "\(line)")
            }
        }
        #expect(try PhoneOrder(parsing: #"{"action":"swap","id":7}"#)?.id == 7)
        #expect(try PhoneOrder(parsing: "   ") == nil)
        let largest = try PhoneOrder(parsing: #"{"action":"swap","id":\#(Int.max)}"#)
        #expect(largest?.id == .max)
    }

    @Test(arguments: [
        "dance", "call", "call a b", "answer one", "answer 1 2", "keys", "transfer", "text sip:a@b", "queue sip:a@b",
        "volume",
        "volume 100",
        "volume -61", "swap 1", "push", "push {", #"{"action":"push"}"#, "{", "{}", #"{"action":"dance"}"#,
        #"{"action":"start"}"#, #"{"action":"setHeld"}"#,
        #"{"action":"volume","db":1e9}"#, #"{"action":"answer","call":"x"}"#,
        #"{"action":"answer","id":18446744073709551615}"#,
    ])
    func `what says nothing is refused, with a remedy`(line: String) {
        do throws(PhoneOrderFault) {
            Issue.record("read: \(String(describing: try PhoneOrder(parsing: line)))")
        } catch {
            #expect(error.message.hasSuffix(".") && !error.message.isEmpty)
        }
    }

    @Test func `a refused action is named`() {
        #expect(throws: PhoneOrderFault("There is no action dance. See media-tool help phone.", id: 9)) {
            try PhoneOrder(parsing: #"{"action":"dance","id":9}"#)
        }
    }
}
