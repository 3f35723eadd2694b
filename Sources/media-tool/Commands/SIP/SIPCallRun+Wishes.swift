import CallBasics
import CallCore
import MediaEngine
import SDP
import SIP
import SIPTransport

/// What this side wants of a call.
extension SIPCallRun {
    func hangUp() async {
        await hangUpOthers()
        let handle = current
        await party.endpoint.perform { agent, now in agent.hangUp(handle, at: now) }
    }

    /// Ends what was begun beside the call that talks, or is left of it.
    func hangUpOthers() async {
        let handles = left + [other?.handle, followed].compactMap(\.self)
        await party.endpoint.perform { agent, now in for handle in handles { agent.hangUp(handle, at: now) } }
    }

    /// Holds or resumes the call.
    func setHeld(_ isHeld: Bool) async {
        let (handle, sound) = (current, sound)
        await party.endpoint.perform { agent, now in
            guard var session = agent.session(of: handle) else { return }
            sound.describe(&session, isHeld: isHeld)
            agent.change(handle, to: session, at: now)
        }
    }

    /// Looks for another way, since nothing gets through any more (ICE), and tells the other side.
    func findWay() async {
        guard let place = try? await sound.findWay() else { return }
        let handle = current
        await party.endpoint.perform { agent, now in
            guard var session = agent.session(of: handle) else { return }
            place.tell(in: &session)
            agent.change(handle, to: session, at: now)
        }
    }

    /// Sends silence in the place of what is spoken, or no more; where there is no sound yet, from its beginning on.
    func setMuted(_ isMuted: Bool) async {
        self.isMuted = isMuted
        if let call = await sound.call { call.isMuted = isMuted }
    }

    /// Describes the session once more, as it is wished.
    func update() async {
        let handle = current
        await party.endpoint.perform { agent, now in
            guard let session = agent.session(of: handle) else { return }
            agent.change(handle, to: session, by: .update, at: now)
        }
    }

    /// Holds the call, and asks the other side to call somebody else.
    func transfer(to target: SIPURI) async {
        guard heldBefore == nil else { return wishes.takesTransfer("\(target)", .failed(status: 491)) }
        let wasHeld = isHeld.us
        (transferTarget, heldBefore) = ("\(target)", wasHeld)
        await setHeld(true)
        let handle = current
        do {
            try await party.endpoint.perform { agent, now in try agent.transfer(handle, to: target, at: now) }
        } catch {
            StandardError.write("Note: the call was not transferred: \(error)\n")
            heldBefore = nil
            await setHeld(wasHeld)
            wishes.takesTransfer("\(target)", .failed(status: 400))
        }
    }

    /// Holds the call, and calls somebody else whom it is to be handed over to.
    func transfer(over target: SIPURI, _ makeSound: () async throws -> CallSound) async {
        transferTarget = "\(target)"
        await setHeld(true)
        do {
            let silence = try await makeSound()
            var made = UserAgent.CallWishes(session: silence.session, account: party.account)
            made.spareSessions = silence.spareSessions
            let asked = made
            do {
                let handle = try await party.endpoint.perform { agent, now in try agent.call(target, asked, at: now) }
                other = (handle, silence)
            } catch {
                _ = try await silence.end(after: .zero)
                throw error
            }
        } catch {
            StandardError.write("Note: the call was not transferred: \(error)\n")
            await setHeld(false)
        }
    }

    /// Sends the keys that were asked for.
    func sendKeys() async {
        guard let keys = wishes.keys, await sound.call != nil else { return }
        do { try await send(keys: keys) } catch { StandardError.write("Note: the keys were not sent: \(error)\n") }
    }

    /// Sends keys, in the way that was asked for, else in the one that was agreed on.
    ///
    /// - Throws: `ToolFailure` when there is no sound yet; what the way throws
    func send(keys: DTMFSequence) async throws {
        guard let call = await sound.call else { throw ToolFailure("No sound flows yet. Wait for the answer.") }
        let hasEvents = await !(sound.agreed?.sending.telephoneEvents.isEmpty ?? true)
        switch wishes.keyWay ?? (hasEvents ? .rtp : .info) {
        case .rtp: try call.sendDTMF(keys.description)
        case .inband: try call.sendInBandDTMF(keys.description)
        case .info: try await sendByINFO(keys)
        }
    }

    private func sendByINFO(_ keys: DTMFSequence) async throws {
        for element in keys.elements {
            switch element {
            case .pause(let pause): try await Task.sleep(for: pause)
            case .digit(let digit):
                guard let key = "\(digit)".first else { continue }
                let handle = current
                try await party.endpoint.perform { agent, now in
                    try agent.send(DTMFRelay(key, duration: .milliseconds(100)), in: handle, at: now)
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
