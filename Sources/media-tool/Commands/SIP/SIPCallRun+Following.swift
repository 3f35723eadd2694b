import CallBasics
import CallCore
import SDP
import SIP
import SIPTransport

/// The transfer that the other side asks for.
extension SIPCallRun {
    /// Calls whom the other side asks to call; the sound is that of this call.
    func follow(_ wishes: TransferRequest) async {
        transferTarget = "\(wishes.target)"
        let (handle, sound) = (current, sound)
        do {
            followed = try await party.endpoint.perform { agent, now in
                // Its ports may have changed since the call began.
                var session = sound.sessionForAnother(like: agent.session(of: handle))
                session.hold = nil
                return try agent.acceptTransfer(handle, number: wishes.number, session, at: now)
            }
            tell("accepted", 202)
        } catch {
            StandardError.write("Note: the call was not transferred: \(error)\n")
            tell("failed", 400)
        }
    }

    /// Answers a call that takes the place of this one, as when the other side hands it over, if transfers are followed; all others
    /// find it busy.
    func meet(_ handle: CallHandle, _ invite: SIPMessage) async {
        // One that rings yet has no talk that could go on.
        let (current, sound, isFree) = (current, sound, wishes.followsTransfers && followed == nil && isAnswered)
        let takesPlace = await party.endpoint.perform { agent, now in
            if isFree, agent.replacedCall(of: handle) == current {
                let session = sound.sessionForAnother(like: agent.session(of: current))
                return (try? agent.answer(handle, session, at: now)) != nil
            }
            agent.reject(handle, status: 486, at: now)
            return false
        }
        guard takesPlace else { return }
        (followed, transferTarget) = (handle, (try? invite.from())?.uri.bytes.text ?? "somebody")
    }

    /// Takes what the agent tells of the call that was asked for: once it is answered, it is the one that talks.
    func receiveFollowed(_ event: AgentEvent, at now: MediaTime) async {
        switch event {
        case .progress(_, let response): tell("trying", response.statusCode ?? 0)
        case .agreed(_, let session):
            followedSession = session
            // An association of DTLS that another one replaces does not come back, should the target refuse.
            if sound.encryption != .dtls { await agree(session) }
        case .established(let handle):
            if formerEnd == nil { left.append(current) }
            (current, followed, formerEnd) = (handle, nil, nil)
            (lastSession, peer) = (followedSession, transferTarget)
            tell("done", 200)
            if sound.encryption == .dtls, let lastSession { await agree(lastSession) }
        case .ended(_, let end):
            followed = nil
            tell("failed", end.code ?? 408)
            if let formerEnd {
                // One that was taken back here ends as the call did that asked for it.
                return await finish(end.cause == .cancelled && end.side == .us ? formerEnd : end, at: now)
            }
            // What was heard before the answer came from elsewhere.
            if let lastSession { await agree(lastSession) }
        default: break
        }
    }

    private func tell(_ state: String, _ code: Int) {
        teller.tell(
            "transfer",
            [
                ("by", .string("them")), ("to", .string(transferTarget)), ("state", .string(state)),
                ("code", .integer(code)),
            ],
            text: "Transferred to \(transferTarget): \(state) (\(code))."
        )
    }
}
