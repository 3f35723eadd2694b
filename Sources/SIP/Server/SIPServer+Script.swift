internal import CallBasics

/// Names a message that a rule holds back.
struct DelayedID: SlotName {
    let slot: Int
    let serial: UInt64
}

struct DelayedMessage: Sendable {
    let message: SIPMessage
    let flow: Flow
}

extension SIPServer {
    /// Messages held back at once; those beyond are lost.
    static let delayedCount = 4096

    /// Whether a rule takes a message away before any transaction has seen it.
    mutating func isHeldBack(_ message: SIPMessage, on flow: Flow, at now: MediaTime) -> Bool {
        let action = takeRule(for: message) { action in
            switch action {
            case .delay, .drop, .cut: true
            case .duplicate, .answer: false
            }
        }
        switch action {
        case .delay(let time)?:
            guard delayed.count < Self.delayedCount else { return true }
            let id = delayed.insert { _ in DelayedMessage(message: message, flow: flow) }
            delayed.setDeadline(of: id, to: now + time)
        case .cut?:
            flows.close(flow)
            transactions.handleTransportError(on: flow, at: now)
        case .drop?: break
        case .duplicate?, .answer?, nil: return false
        }
        return true
    }

    /// The action of the first rule that fits a request, which counts as followed.
    mutating func takeRule(for request: SIPMessage, where isWanted: (ServerRule.Action) -> Bool) -> ServerRule.Action? {
        guard !script.isEmpty, let method = request.method else { return nil }
        let user = try? request.to()?.uri.user
        let place = script.firstIndex { rule in
            isWanted(rule.action) && rule.times != 0 && rule.method.map { $0 == method } ?? true
                && rule.user.map { $0 == user } ?? true
        }
        guard let place else { return nil }
        if let times = script[place].times { script[place].times = times - 1 }
        return script[place].action
    }
}
