internal import CallBasics
public import MediaEngine
internal import SDP
internal import SIP

/// One call in the place of another: the other side is sent to somebody, or sends this one.
extension PhoneCall {
    // MARK: The own transfer

    /// Holds the call, and asks the other side to call somebody else (REFER, RFC 3515).
    ///
    /// Once they talk this call ends; when they do not, it is resumed. Events tell how it goes.
    ///
    /// - Throws: `PhoneError` when the call is not answered, or another transfer is under way
    public func transfer(to uri: String) throws {
        let (handle, target) = (handle, try PhoneError.uri(uri))
        try transfer { agent, now throws(SIPError) in try agent.transfer(handle, to: target, at: now) }
    }

    /// Holds the call, and has its other side talk to that of another call, in the place of this phone (RFC 5589, section 7).
    ///
    /// Both calls end once they talk; when they do not, this one is resumed. Events of this call tell how it goes.
    ///
    /// - Parameter other: Another call of the same phone, answered.
    /// - Throws: `PhoneError` when one of the calls is not answered, or another transfer is under way
    public func transfer(to other: PhoneCall) throws {
        guard other.phone === phone, other !== self else {
            throw PhoneError(.state, "A call is handed over to another one of the same phone. Give one.")
        }
        let (handle, target) = (handle, other.handle)
        try transfer { agent, now throws(SIPError) in try agent.transfer(handle, to: target, at: now) }
    }

    private func transfer(_ ask: @Sendable (inout UserAgent, MediaTime) throws(SIPError) -> Void) throws {
        guard isAnswered, end == nil else { throw PhoneError(.state, "The call is not answered. Wait for the answer.") }
        // A call that its user holds stays so when nothing comes of it.
        let isToHold = !isToBeHeld
        if isToHold { setHeld(true) }
        do throws(SIPError) {
            try act(ask)
        } catch {
            if isToHold { setHeld(false) }
            throw PhoneError(.state, error.message)
        }
        isHeldForTransfer = isToHold
    }

    /// Whether this side holds it, or has said that it will.
    private var isToBeHeld: Bool {
        let handle = handle
        return act { agent, _ in agent.session(of: handle)?.hold != nil }
    }

    // MARK: A call that takes the place of another one

    /// Answers a call that takes the place of another one: the sound goes on, held and muted as it was.
    ///
    /// Throws: `PhoneError` when the two have no codec in common: then it was answered 488
    func answer(inPlaceOf former: PhoneCall) throws {
        let (handle, formerHandle) = (handle, former.handle)
        // Both are on one event loop.
        let sound = former.assumeIsolated { $0.sound }
        try PhoneError.wrapping(.state) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in
                guard let session = agent.session(of: formerHandle) else {
                    throw SIPError(.badRequest, "The call that another one was to replace is over.")
                }
                try agent.answer(handle, sound?.sessionForAnother(like: session) ?? session, at: now)
            }
        }
        former.assumeIsolated { $0.passSound(to: self) }
    }

    private func passSound(to call: PhoneCall) {
        let (sound, listening, isMuted, listener) = (sound, listening, isMuted, listener ?? self)
        call.assumeIsolated { call in
            (call.sound, call.listening, call.isMuted, call.listener) = (sound, listening, isMuted, listener)
        }
        (self.sound, self.listening, successor) = (nil, nil, call)
        if listener !== self { listener.assumeIsolated { $0.successor = call } }
    }

    // MARK: The other side's transfer

    /// Calls whom the other side asks to call; it is told how that goes.
    ///
    /// This call is held unless the other side holds it. Once the new one is answered it is ended, by whoever asked or by this side
    /// 3 s later; when the new one is not answered, this one is resumed.
    ///
    /// - Parameters:
    ///   - transfer: What `PhoneCallEvent.transferRequested` has told.
    ///   - sound: Says where the new call's sound comes from and goes to; the engine's call card unless it says otherwise.
    /// - Returns: The new call, on its way.
    /// - Throws: `PhoneError` when that is not asked for any more, or the target cannot be called; `EngineError` when there is no
    ///   port
    @discardableResult public func acceptTransfer(
        _ transfer: PhoneTransfer,
        _ sound: @escaping @Sendable (inout CallConfiguration) -> Void = { _ in }
    ) async throws -> PhoneCall {
        guard let phone, end == nil else { throw PhoneError(.state, "The call is over.") }
        let call = try await phone.follow(transfer, from: handle, sound)
        guard end == nil, !isToBeHeld, !held.them else { return call }
        setHeld(true)
        Task { do { try await call.answered() } catch { setHeld(false) } }
        return call
    }

    /// Does not call whom the other side asks to call, and tells it so (603); this call goes on.
    public func refuseTransfer(_ transfer: PhoneTransfer) {
        let handle = handle
        act { agent, now in agent.refuseTransfer(handle, number: transfer.number, at: now) }
    }
}

extension PhoneTransfer {
    init(_ wishes: TransferRequest) {
        self.init(
            target: "\(wishes.target)",
            referrer: wishes.referrer,
            isAttended: wishes.replaces != nil,
            number: wishes.number
        )
    }
}
