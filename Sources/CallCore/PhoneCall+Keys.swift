internal import CallBasics
internal import MediaEngine
internal import SDP
internal import SIP

extension PhoneCall {
    /// Sends keys, one after the other: telephone events (RFC 4733) where they were agreed on, else INFO.
    ///
    /// - Parameter keys: 0-9 * # A-D; `,` is a pause of 2 s.
    /// - Throws: `EngineError` when a character is no key, or too many wait; `PhoneError` when the call is not answered
    public func sendDTMF(_ keys: String) async throws {
        guard isAnswered, end == nil, let sound, let call = await sound.call else {
            throw PhoneError(.state, "No sound flows yet. Wait for the answer.")
        }
        if await !(sound.agreed?.sending.telephoneEvents.isEmpty ?? true) { return try call.sendDTMF(keys) }
        let sequence: DTMFSequence
        do { sequence = try DTMFSequence(parsing: keys) } catch { throw PhoneError(.invalid, error.message) }
        let former = self.keys
        self.keys = Task {
            await former?.value
            await sendByINFO(sequence)
        }
    }

    private func sendByINFO(_ sequence: DTMFSequence) async {
        let handle = handle
        for element in sequence.elements where end == nil {
            switch element {
            case .pause(let pause): try? await Task.sleep(for: pause)
            case .digit(let digit):
                guard let key = "\(digit)".first else { continue }
                act { agent, now in try? agent.send(DTMFRelay(key, duration: .milliseconds(100)), in: handle, at: now) }
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
