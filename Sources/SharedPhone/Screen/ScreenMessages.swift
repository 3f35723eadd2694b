public import CallCore
internal import LocalMessaging

/// A call as a screen that comes later has to show it.
public struct ShownCall: Hashable, Sendable, Codable {
    /// What it is known by.
    public let call: CallUUID
    /// What is shown of it.
    public internal(set) var update: CallUpdate
    /// Whether this side calls.
    public let isOutgoing: Bool
    /// Whether it was answered, by either side.
    public internal(set) var isConnected = false
    /// Whether the microphone is muted for it.
    public internal(set) var isMuted = false
}

/// What a core tells its screens, in order.
enum ScreenReport: LocalMessage {
    static let messageType = MessageType(name: "calls.report")

    /// All that is on: the first of what a screen hears.
    case snapshot(ScreenSnapshot.Reply)
    case outgoing(CallUUID, CallUpdate, OutgoingStage)
    case updated(CallUUID, CallUpdate)
    case ended(CallUUID, ReportedEnd)
    case performed(ProviderAction, ActionOutcome)
    case audio(isActive: Bool)
}

/// A core to a screen: a call has come; the answer says whether it is shown.
struct ScreenQuestion: LocalRequest {
    static let messageType = MessageType(name: "calls.incoming")

    struct Reply: Codable, Sendable { let refusal: CallRefusal? }

    let call: CallUUID
    let update: CallUpdate
}

/// Somebody asks the core what is on.
struct ScreenSnapshot: LocalRequest {
    static let messageType = MessageType(name: "calls.snapshot")

    struct Reply: Codable, Hashable, Sendable {
        let calls: [ShownCall]
        let isAudioActive: Bool
    }
}

/// Somebody to the core: do this, all or nothing.
struct ScreenTransaction: LocalRequest {
    static let messageType = MessageType(name: "calls.transaction")

    struct Step: Codable, Sendable {
        let call: CallUUID
        let kind: ProviderAction.Kind
    }

    struct Reply: Codable, Sendable { let outcomes: [ActionOutcome] }

    let steps: [Step]
}

/// Somebody to the core: the sound is its, or not any more; or all calls end.
enum ScreenCommand: LocalRequest {
    static let messageType = MessageType(name: "calls.command")

    struct Reply: Codable, Sendable {
        /// What a push has led to; nil where it has not.
        let call: CallUUID?
    }

    case setAudio(isActive: Bool)
    case reset
    case push(callID: String?, from: String?, displayName: String?)
}
