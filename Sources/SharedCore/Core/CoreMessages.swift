internal import LocalMessaging

/// The name under which the core that runs serves its group.
let coreServerName = "core"

/// A main, or a core for calls, to the core that runs: give way.
struct YieldRequest: LocalRequest {
    static let messageType = MessageType(name: "core.yield")

    struct Reply: Codable, Sendable {
        /// Whether the core ends now; a main does not, nor a core for calls while a call is on.
        let isEnding: Bool
    }
}

/// What a push named.
enum AwaitedItem: Hashable, Codable, Sendable {
    /// The message with this call-id.
    case message(callID: String)
    /// The chat room at this address.
    case room(address: String)
}

/// A process to the core that runs: this is waited for, and not in the store.
///
/// It is, for as long as the connection lasts.
struct ItemAwaited: LocalMessage {
    static let messageType = MessageType(name: "core.itemAwaited")

    let item: AwaitedItem
}

/// A process to the core that runs: an account is to be added or changed, or removed where there is none.
struct AccountChange: LocalRequest {
    static let messageType = MessageType(name: "core.accountChange")

    struct Reply: Codable, Sendable {}

    let address: String
    let account: StoredAccount?
}

/// A process to the core that runs: an action is queued in the store.
struct ActionQueued: LocalMessage {
    static let messageType = MessageType(name: "core.actionQueued")
}

/// The core that runs to those who wait: something is in the store.
///
/// It carries no content: the store has it, also for those who did not hear this.
struct StoreChanged: LocalMessage {
    static let messageType = MessageType(name: "core.storeChanged")

    /// What changed.
    enum Change: Codable, Hashable, Sendable {
        case message(callID: String)
        case room(address: String)
        case actionDone(id: String)
    }

    let change: Change
}
