package import CallBasics

extension Registration {
    /// Takes the final response to the REGISTER under way; others are passed over.
    package mutating func receive(
        _ response: SIPMessage,
        _ surroundings: Surroundings = Surroundings(),
        at now: MediaTime
    ) {
        guard let running, let status = response.statusCode, status >= 200,
            let cSeq = try? response.cSeq(), cSeq.number == running.request.number, cSeq.method == .register
        else { return }
        phrase = response.reasonPhrase
        if running.wish == .unregister {
            return finish(.cleared, status < 300 ? .accepted : .status(status))
        }
        switch status {
        case ..<300: accept(response, running, at: now)
        case 423: lengthen(response, running, at: now)
        case 555 where running.request.hasPush && !configuration.push.isEmpty:
            isPushRefused = true
            warn(.pushNotServed)
            send(.register, isLengthened: running.isLengthened)
        case 408, 430, 480, 500...554, 556...599:
            retry(.status(status), Self.retryAfter(of: response), surroundings, at: now)
        default: refuse(.status(status), Self.retryAfter(of: response), at: now)
        }
    }

    /// Takes the failure of the transaction of the REGISTER with this CSeq number.
    package mutating func fail(
        _ failure: TransactionFailure,
        number: UInt32,
        _ surroundings: Surroundings = Surroundings(),
        at now: MediaTime
    ) {
        guard let running, running.request.number == number else { return }
        phrase = nil
        isUnanswered = true
        if running.wish == .unregister { return finish(.cleared, .failure(failure)) }
        retry(.failure(failure), nil, surroundings, at: now)
    }

    private mutating func accept(_ response: SIPMessage, _ running: Running, at now: MediaTime) {
        let granted = RegistrationBinding(
            response,
            to: running.contact,
            configuration,
            asked: running.request.expires,
            at: now
        )
        guard let granted else { return refuse(.notListed, nil, at: now) }
        binding = granted
        schedule.succeed()
        deadline =
            now
            + schedule.refreshDelay(
                granted: granted.granted,
                wakeSeconds: configuration.wakesItself ? granted.wakeSeconds : nil
            )
        if !granted.isListed { warn(.nothingListed) }
        finish(.ok, .accepted)
    }

    /// Asks once more, for as long as the registrar wants at least (RFC 3261, section 10.2.8).
    private mutating func lengthen(_ response: SIPMessage, _ running: Running, at now: MediaTime) {
        let least: WholeNumber? = try? response.value(.minExpires)
        guard let least, least.value > running.request.expires, !running.isLengthened else {
            return refuse(.status(423), nil, at: now)
        }
        expires = least.value
        send(.register, isLengthened: true)
    }

    private mutating func retry(
        _ reason: Reason,
        _ retryAfter: UInt32?,
        _ surroundings: Surroundings,
        at now: MediaTime
    ) {
        if surroundings.hasNextTarget { return send(.register, isLengthened: running?.isLengthened ?? false) }
        deadline = now + schedule.retryDelay(hasOtherFlow: surroundings.hasOtherFlow, retryAfter: retryAfter)
        end(reason)
    }

    private mutating func refuse(_ reason: Reason, _ retryAfter: UInt32?, at now: MediaTime) {
        deadline = now + schedule.refusalDelay(retryAfter: retryAfter)
        end(reason)
    }

    private mutating func end(_ reason: Reason) {
        binding = nil
        finish(.failed, reason)
    }

    private static func retryAfter(of response: SIPMessage) -> UInt32? {
        let value: RetryAfter? = try? response.value(.retryAfter)
        return value?.seconds
    }
}
