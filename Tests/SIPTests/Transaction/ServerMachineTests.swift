import CallBasics
import Testing

@testable import SIP

/// What a server's machine hears.
enum ServerEvent: Sendable {
    case again, ack, respond(Int), timeout, transportError
}

@Suite struct ServerMachineTests {
    typealias InviteRow = Row<ServerEvent, InviteServer.State>
    typealias OtherRow = Row<ServerEvent, NonInviteServer.State>

    static let inviteRows: [InviteRow] = [
        InviteRow(
            "a repeat gets the last provisional response",
            [
                Step(10, .again, [.send], .proceeding, nil), Step(20, .respond(180), [.sendNew], .proceeding, nil),
                Step(30, .again, [.send], .proceeding, nil), Step(40, .ack, [], .proceeding, nil),
                Step(90000, .timeout, [], .proceeding, nil),
            ]
        ),
        InviteRow(
            "G doubles up to T2, H ends it",
            [
                Step(0, .respond(486), [.sendNew], .completed, 500), Step(500, .timeout, [.send], .completed, 1500),
                Step(1500, .timeout, [.send], .completed, 3500), Step(3500, .timeout, [.send], .completed, 7500),
                Step(7500, .timeout, [.send], .completed, 11500), Step(7600, .again, [.send], .completed, 11500),
                Step(31500, .timeout, [.send], .completed, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        InviteRow(
            "H runs over a reliable transport, too",
            reliable: true,
            [
                Step(0, .respond(300), [.sendNew], .completed, 32000), Step(500, .timeout, [], .completed, 32000),
                Step(32000, .timeout, [.fail(.timeout)], .terminated, nil),
            ]
        ),
        InviteRow(
            "ACK confirms, more of them are absorbed until I",
            [
                Step(0, .respond(699), [.sendNew], .completed, 500), Step(100, .ack, [], .confirmed, 5100),
                Step(200, .ack, [], .confirmed, 5100), Step(300, .again, [], .confirmed, 5100),
                Step(400, .respond(200), [], .confirmed, 5100), Step(5100, .timeout, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "I is 0 over a reliable transport",
            reliable: true,
            [
                Step(0, .respond(486), [.sendNew], .completed, 32000), Step(100, .ack, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "accepted: INVITE absorbed, ACK up, 2xx down, until L",
            reliable: true,
            [
                Step(0, .respond(200), [.sendNew], .accepted, 32000), Step(100, .again, [], .accepted, 32000),
                Step(200, .respond(200), [.sendNew], .accepted, 32000), Step(300, .ack, [.deliver], .accepted, 32000),
                Step(400, .ack, [.deliver], .accepted, 32000), Step(500, .respond(486), [], .accepted, 32000),
                Step(600, .respond(180), [], .accepted, 32000),
                Step(700, .transportError, [.fail(.unreachable)], .accepted, 32000),
                Step(32000, .timeout, [], .terminated, nil),
            ]
        ),
        InviteRow(
            "a second final response is not sent",
            [
                Step(0, .respond(486), [.sendNew], .completed, 500), Step(10, .respond(200), [], .completed, 500),
                Step(20, .respond(180), [], .completed, 500),
            ]
        ),
        InviteRow(
            "an error of the transport",
            [
                Step(0, .transportError, [.fail(.unreachable)], .terminated, nil),
                Step(1, .again, [], .terminated, nil),
            ]
        ),
    ]

    @Test(arguments: inviteRows) func `INVITE server`(row: InviteRow) {
        var machine = InviteServer(TransactionTimers(), isReliable: row.isReliable)
        for step in row.steps {
            let now = MediaTime.ms(step.time)
            let actions =
                switch step.event {
                case .again: machine.receiveRepeat()
                case .ack: machine.receiveAck(at: now)
                case .respond(let status): machine.respond(status: status, at: now)
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
            "100 at 3.5 s and not before",
            [
                Step(10, .again, [], .trying, 3500), Step(3499, .respond(100), [], .trying, 3500),
                Step(3500, .timeout, [.sendTrying], .proceeding, nil), Step(4000, .again, [.send], .proceeding, nil),
                Step(5000, .respond(200), [.sendNew], .completed, 37000),
                Step(6000, .again, [.send], .completed, 37000),
                Step(7000, .respond(500), [], .completed, 37000), Step(37000, .timeout, [], .terminated, nil),
            ]
        ),
        OtherRow(
            "no other provisional response",
            reliable: true,
            [
                Step(10, .respond(180), [], .trying, 3500), Step(20, .respond(100), [.sendNew], .proceeding, nil),
            ]
        ),
        OtherRow(
            "a final response at once",
            [
                Step(10, .respond(699), [.sendNew], .completed, 32010)
            ]
        ),
        OtherRow(
            "J is 0 over a reliable transport",
            reliable: true,
            [
                Step(10, .respond(200), [.sendNew], .terminated, nil)
            ]
        ),
        OtherRow(
            "a 408 is never sent",
            [
                Step(10, .respond(408), [], .completed, 32010), Step(20, .again, [], .completed, 32010),
                Step(32010, .timeout, [], .terminated, nil),
            ]
        ),
        OtherRow(
            "an error of the transport before the answer",
            [
                Step(10, .transportError, [.fail(.unreachable)], .terminated, nil)
            ]
        ),
        OtherRow(
            "an error of the transport after the answer",
            [
                Step(10, .respond(200), [.sendNew], .completed, 32010), Step(20, .transportError, [], .terminated, nil),
            ]
        ),
    ]

    @Test(arguments: otherRows) func `other server`(row: OtherRow) {
        var machine = NonInviteServer(TransactionTimers(), isReliable: row.isReliable, at: .zero)
        for step in row.steps {
            let now = MediaTime.ms(step.time)
            let actions: [TransactionAction] =
                switch step.event {
                case .again: machine.receiveRepeat()
                case .ack: []
                case .respond(let status): machine.respond(status: status, at: now)
                case .timeout: machine.handleTimeout(at: now)
                case .transportError: machine.handleTransportError()
                }
            #expect(actions == step.actions, "at \(step.time) ms")
            #expect(machine.state == step.state, "at \(step.time) ms")
            #expect(machine.deadline?.ms == step.deadline, "at \(step.time) ms")
        }
    }
}
