import CallBasics
import Testing

@testable import SIP

/// What a client's machine hears.
enum ClientEvent: Sendable {
    case status(Int), cancel, timeout, transportError
}

/// An event at a time in ms, and what it must lead to.
struct Step<Event: Sendable, State: Sendable>: Sendable {
    let time: Int64
    let event: Event
    let actions: [TransactionAction]
    let state: State
    /// The next deadline in ms.
    let deadline: Int64?

    init(_ time: Int64, _ event: Event, _ actions: [TransactionAction], _ state: State, _ deadline: Int64?) {
        (self.time, self.event, self.actions, self.state, self.deadline) = (time, event, actions, state, deadline)
    }
}

/// A row of the tables: a transport, and what happens on it.
struct Row<Event: Sendable, State: Sendable>: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let isReliable: Bool
    let steps: [Step<Event, State>]

    init(_ name: String, reliable: Bool = false, _ steps: [Step<Event, State>]) {
        (testDescription, isReliable, self.steps) = (name, reliable, steps)
    }
}

extension MediaTime {
    static func ms(_ count: Int64) -> MediaTime { MediaTime(nanoseconds: count * 1_000_000) }
    var ms: Int64 { nanoseconds / 1_000_000 }
}

@Suite struct ClientMachineTests {
    typealias InviteRow = Row<ClientEvent, InviteClient.State>
    typealias OtherRow = Row<ClientEvent, NonInviteClient.State>

    static let inviteRows: [InviteRow] = [
        InviteRow(
            "A doubles without cap, B ends it",
            [
                Step(499, .timeout, [], .calling, 500), Step(500, .timeout, [.send], .calling, 1500),
                Step(1500, .timeout, [.send], .calling, 3500), Step(3500, .timeout, [.send], .calling, 7500),
                Step(7500, .timeout, [.send], .calling, 15500), Step(15500, .timeout, [.send], .calling, 31500),
                Step(31500, .timeout, [.send], .calling, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        InviteRow(
            "over a reliable transport only B runs",
            reliable: true,
            [
                Step(500, .timeout, [], .calling, 32000), Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        InviteRow(
            "a provisional response stops A and B, each goes up",
            [
                Step(100, .status(100), [.deliver], .proceeding, nil),
                Step(200, .status(180), [.deliver], .proceeding, nil),
                Step(90000, .timeout, [], .proceeding, nil),
            ]
        ),
        InviteRow(
            "a refusal is acknowledged, its repeats too, until D",
            [
                Step(100, .status(100), [.deliver], .proceeding, nil),
                Step(200, .status(486), [.sendAck, .deliver], .completed, 32200),
                Step(700, .status(486), [.send], .completed, 32200), Step(800, .status(180), [], .completed, 32200),
                Step(900, .status(200), [], .completed, 32200), Step(32199, .timeout, [], .completed, 32200),
                Step(32200, .timeout, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "a refusal without a provisional one",
            [
                Step(50, .status(300), [.sendAck, .deliver], .completed, 32050)
            ]
        ),
        InviteRow(
            "D is 0 over a reliable transport",
            reliable: true,
            [
                Step(50, .status(699), [.sendAck, .deliver], .terminated, nil),
                Step(60, .status(699), [], .terminated, nil),
            ]
        ),
        InviteRow(
            "every 2xx goes up until M",
            reliable: true,
            [
                Step(50, .status(200), [.deliver], .accepted, 32050),
                Step(60, .status(200), [.deliver], .accepted, 32050),
                Step(70, .status(180), [], .accepted, 32050), Step(80, .status(486), [], .accepted, 32050),
                Step(90, .transportError, [], .accepted, 32050), Step(95, .cancel, [], .accepted, 32050),
                Step(32050, .timeout, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "a 2xx after a provisional one",
            [
                Step(50, .status(183), [.deliver], .proceeding, nil),
                Step(60, .status(299), [.deliver], .accepted, 32060),
            ]
        ),
        InviteRow(
            "an error of the transport ends a call that is not answered",
            [
                Step(50, .transportError, [.fail(.unreachable)], .terminated, nil),
                Step(60, .transportError, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "an error of the transport ends a refused one",
            [
                Step(50, .status(486), [.sendAck, .deliver], .completed, 32050),
                Step(60, .transportError, [.fail(.unreachable)], .terminated, nil),
            ]
        ),
        InviteRow(
            "CANCEL waits for a provisional response",
            [
                Step(50, .cancel, [], .calling, 500), Step(60, .cancel, [], .calling, 500),
                Step(70, .status(100), [.deliver, .sendCancel], .proceeding, 32070),
                Step(80, .status(180), [.deliver], .proceeding, 32070),
                Step(90, .status(487), [.sendAck, .deliver], .completed, 32090),
            ]
        ),
        InviteRow(
            "CANCEL without an answer to the INVITE ends it here",
            [
                Step(70, .status(180), [.deliver], .proceeding, nil),
                Step(100, .cancel, [.sendCancel], .proceeding, 32100), Step(200, .cancel, [], .proceeding, 32100),
                Step(32100, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        InviteRow(
            "a 2xx that crosses the CANCEL goes up",
            [
                Step(70, .status(180), [.deliver], .proceeding, nil),
                Step(100, .cancel, [.sendCancel], .proceeding, 32100),
                Step(110, .status(200), [.deliver], .accepted, 32110),
            ]
        ),
    ]

    @Test(arguments: inviteRows) func `INVITE client`(row: InviteRow) {
        var machine = InviteClient(TransactionTimers(), isReliable: row.isReliable, at: .zero)
        for step in row.steps {
            let now = MediaTime.ms(step.time)
            let actions =
                switch step.event {
                case .status(let status): machine.receive(status: status, at: now)
                case .cancel: machine.cancel(at: now)
                case .timeout: machine.handleTimeout(at: now)
                case .transportError: machine.handleTransportError()
                }
            #expect(actions == step.actions, "at \(step.time) ms")
            #expect(machine.state == step.state, "at \(step.time) ms")
            #expect(machine.deadline?.ms == step.deadline, "at \(step.time) ms")
        }
    }

    static let otherRows: [OtherRow] = [
        OtherRow(
            "E doubles up to T2, F ends it",
            [
                Step(500, .timeout, [.send], .trying, 1500), Step(1500, .timeout, [.send], .trying, 3500),
                Step(3500, .timeout, [.send], .trying, 7500), Step(7500, .timeout, [.send], .trying, 11500),
                Step(11500, .timeout, [.send], .trying, 15500), Step(15500, .timeout, [.send], .trying, 19500),
                Step(19500, .timeout, [.send], .trying, 23500), Step(23500, .timeout, [.send], .trying, 27500),
                Step(27500, .timeout, [.send], .trying, 31500), Step(31500, .timeout, [.send], .trying, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        OtherRow(
            "over a reliable transport only F runs",
            reliable: true,
            [
                Step(10, .status(100), [.deliver], .proceeding, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        OtherRow(
            "a provisional response makes E T2, F still runs",
            [
                Step(10, .status(100), [.deliver], .proceeding, 4010),
                Step(20, .status(100), [.deliver], .proceeding, 4010),
                Step(4010, .timeout, [.send], .proceeding, 8010),
                Step(31000, .timeout, [.send], .proceeding, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        OtherRow(
            "repeats of the answer are absorbed until K",
            [
                Step(10, .status(200), [.deliver], .completed, 5010), Step(20, .status(200), [], .completed, 5010),
                Step(30, .status(100), [], .completed, 5010), Step(40, .transportError, [], .completed, 5010),
                Step(5010, .timeout, [], .terminated, nil),
            ]
        ),
        OtherRow(
            "a final answer after a provisional one",
            [
                Step(10, .status(100), [.deliver], .proceeding, 4010),
                Step(20, .status(404), [.deliver], .completed, 5020),
            ]
        ),
        OtherRow(
            "K is 0 over a reliable transport",
            reliable: true,
            [
                Step(10, .status(404), [.deliver], .terminated, nil)
            ]
        ),
        OtherRow(
            "an error of the transport ends it",
            [
                Step(10, .transportError, [.fail(.unreachable)], .terminated, nil)
            ]
        ),
    ]

    @Test(arguments: otherRows) func `other client`(row: OtherRow) {
        var machine = NonInviteClient(TransactionTimers(), isReliable: row.isReliable, at: .zero)
        for step in row.steps {
            let now = MediaTime.ms(step.time)
            let actions: [TransactionAction] =
                switch step.event {
                case .status(let status): machine.receive(status: status, at: now)
                case .cancel: []
                case .timeout: machine.handleTimeout(at: now)
                case .transportError: machine.handleTransportError()
                }
            #expect(actions == step.actions, "at \(step.time) ms")
            #expect(machine.state == step.state, "at \(step.time) ms")
            #expect(machine.deadline?.ms == step.deadline, "at \(step.time) ms")
        }
    }
}
