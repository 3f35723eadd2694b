import CallBasics
import SDP
import SIPTesting
import Testing

@testable import SIP

extension VirtualNetwork {
    /// An agent holds a call in silence, and tells the other side so.
    mutating func hold(_ index: Int, _ handle: CallHandle, by method: UserAgent.ChangeMethod = .invite) throws {
        try with(index) { agent, now in
            var session = try #require(agent.session(of: handle))
            session.hold = .silent
            agent.change(handle, to: session, by: method, at: now)
        }
    }

    /// What an agent told since the last time, as short words.
    mutating func words(_ index: Int) -> [String] { takeEvents(index).compactMap(\.word) }

    /// The call that was told last.
    func call(_ index: Int) throws -> CallHandle {
        try #require(nodes[index].events.compactMap(\.call).last)
    }

    /// All that was sent, as the index of who sent it, a server's with an s before it, and its first line.
    var lines: [String] {
        sent.map { message in
            switch message.place {
            case .agent(let index): "\(index) \(message.startLine)"
            case .server(let index): "s\(index) \(message.startLine)"
            }
        }
    }
}

extension AgentEvent {
    var word: String? {
        switch self {
        case .registration(_, let state, _): "registration \(state)"
        case .registrationFailed: "registration unanswered"
        case .flowEnded(_, _, let end): "flow \(end)"
        case .incoming: "incoming"
        case .progress(_, let response): "progress \(response.statusCode ?? 0)"
        case .agreed(_, let session):
            "agreed \(session.audio?.direction.word ?? "none")"
                + (session.audio?.isHeldRemotely == true ? " held by them" : "")
                + (session.audio?.isHeldLocally == true ? " held by us" : "")
        case .established: "established"
        case .key(_, let relay): "key \(relay.key)"
        case .changeRefused(_, let status): "refused \(status)"
        case .transfer(_, let progress): "transfer \(progress)"
        case .transferRequested(_, let request): "asked for \(request.target)"
        case .transferLapsed: "asked no more"
        case .ended(_, let end): "ended \(end.side) \(end.cause)"
        case .message(_, let request, _): "message \(String(decoding: request.body, as: UTF8.self))"
        case .response(_, let response, _): "response \(response.statusCode ?? 0)"
        case .failed: "failed"
        case .subscription(_, let event): event.word
        case .room(_, let event): event.word
        case .targets: nil
        }
    }
}

extension SubscriptionEvent {
    fileprivate var word: String {
        switch self {
        case .pending: "pending"
        case .active(let seconds): "active \(seconds ?? 0)"
        case .state(let message): "state \(String(decoding: message.body, as: UTF8.self))"
        case .interrupted(let reason, let retry): "interrupted \(reason ?? "-") \(retry)"
        case .ended(let end): "ended \(end)"
        }
    }
}

extension RoomEvent {
    fileprivate var word: String {
        switch self {
        case .invited(let invite):
            "invited to \(invite.address) by \(invite.inviterName ?? "-") \(invite.inviter): \(invite.subject ?? "-") "
                + "\(invite.members)"
        case .stage(.creationFailed(let end)): "creationFailed \(end.side) \(end.cause)"
        case .stage(let stage): "\(stage)"
        case .changed(let state): "\(state.subject ?? "-"): \(state.members.map(\.address).joined(separator: " "))"
        case .unfollowed(let end): "unfollowed \(end)"
        }
    }
}

extension MediaDirection {
    fileprivate var word: String { "\(sends ? "sends" : "")\(receives ? "receives" : "")" }
}

extension SessionConfiguration {
    /// PCMU at an address.
    static func plain(_ host: String, port: UInt16 = 4000) -> SessionConfiguration {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        return SessionConfiguration(address: host, media: [MediaConfiguration(port: port, formats: [format])])
    }
}
