internal import LocalMessaging
internal import Synchronization

/// Hears from the core that runs, for one who waits.
final class CoreNews: Sendable {
    /// Notifies of everything that the core tells, and at its end.
    let notifier = Notifier()
    private let group: GroupContainer
    private let item: AwaitedItem?
    private let client = Mutex<MessageClient?>(nil)

    /// News from the core of a group, which is told what is waited for; nil is an action that is queued.
    init(group: GroupContainer, item: AwaitedItem?) {
        self.group = group
        self.item = item
    }

    /// Connects to the core that runs, unless it is connected; false when there is none, or it does not answer in time.
    func connect(until deadline: ContinuousClock.Instant) async -> Bool {
        if let client = client.withLock({ $0 }), client.server != nil { return true }
        var configuration = MessagingConfiguration()
        configuration.handshakeLimit = min(configuration.handshakeLimit, deadline - .now)
        var handlers = MessageHandlers()
        handlers.on(StoreChanged.self) { [notifier] _, _ in notifier.notify() }
        let client = try? await MessageClient.connect(
            to: coreServerName,
            in: group,
            handlers: handlers,
            configuration: configuration,
            changed: { [notifier] _ in notifier.notify() }
        )
        if let item {
            try? await client?.send(ItemAwaited(item: item))
        } else {
            try? await client?.send(ActionQueued())
        }
        self.client.withLock { $0 = client }
        return client != nil
    }

    func close() async {
        await client.withLock { $0 }?.close()
    }
}
