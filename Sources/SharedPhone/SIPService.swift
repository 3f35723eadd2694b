internal import CallBasics
public import CallCore
internal import Foundation
public import LocalMessaging
public import MediaEngine
internal import SIP
public import SharedCore

/// The phone of a group of processes, as the service of its core: the accounts of the group are registered by whichever process
/// runs the core, and what comes for them is in the store before the server hears that it was taken.
///
///     MESSAGE ──► store, with the receipt that is wanted ──► 200 ──► receipt
///     INVITE to a room ──► store ──► 200
///     reply, seen ──► MESSAGE or receipt ──► 2xx ──► done
///
/// A process that takes over has the instance and the accounts of the one before it, so it takes the place of that at the
/// servers, too. Calls need an engine. Without one, as in an executor, they are not answered: who calls hears them neither ring
/// nor fail until the main has taken over, or the executor ends; that they came stands in the store.
/// Thread: control, any.
public actor SIPService: CoreService {
    /// How long after a registration, and after a message, what a server still has for it may take to come.
    static let quiet = (registration: Duration.milliseconds(500), message: Duration.milliseconds(250))

    /// What is kept for the next process.
    private static let (instanceName, memoryName) = ("sip.instance", "sip.nonces")

    /// How an account stands.
    enum Standing {
        case pending
        case registered
        /// The server refused it for good.
        case refused
    }

    /// What happens to it, as a phone tells it; for one listener.
    ///
    /// Texts are not among it: they are in the store.
    public nonisolated let events: AsyncStream<PhoneEvent>
    let continuation: AsyncStream<PhoneEvent>.Continuation
    let secrets: SecretStores
    let addresses: Set<String>?
    private let configuration: PhoneConfiguration
    private let engine: CallEngine?
    private let provider: (any CallProvider)?
    /// The group whose other processes are screens.
    private let screenGroup: GroupContainer?
    private let refusesCalls: Bool
    /// Notifies of registrations and messages.
    let changed = Notifier()
    var context: CoreContext?
    var phone: Phone?
    private var ownEngine: CallEngine?
    private var screens: ScreenServer?
    private var listening: Task<Void, Never>?
    var standing: [String: Standing] = [:]
    /// What the process before this one knew of realms, by account.
    var memories: [String: [DigestMemory]] = [:]
    /// The rooms that accounts are in, also those of the process before this one, by address.
    var rooms: [String: KeptRoom] = [:]
    /// Until when more may come of what was pending.
    var quietUntil = ContinuousClock.now
    private var lastFetch = ContinuousClock.now
    private var isFetchPlanned = false
    /// Calls that wait for a main.
    private var waitingCalls: [PhoneCall] = []
    /// While a core runs.
    var receipts: ReceiptSender?

    /// A service for the accounts of a group.
    ///
    /// - Parameters:
    ///   - secrets: Where the secrets are of accounts that name no other place.
    ///   - otherSecrets: The other places, by the names that accounts have for them (`GroupAccount.secretStore`).
    ///   - addresses: The accounts that are used; nil uses all.
    ///   - configuration: Where the phone is, and what it offers; the instance is the group's.
    ///   - engine: Makes the sound of calls; nil where none are answered.
    ///   - provider: The call screen, if there is one.
    ///   - refusesCalls: Without an engine, whether calls are refused at once (480), as by an application that takes none.
    public init(
        secrets: any SecretStore,
        otherSecrets: [String: any SecretStore] = [:],
        accounts addresses: Set<String>? = nil,
        _ configuration: PhoneConfiguration = PhoneConfiguration(),
        engine: CallEngine? = nil,
        provider: (any CallProvider)? = nil,
        refusesCalls: Bool = false
    ) {
        let secrets = SecretStores(usual: secrets, others: otherSecrets)
        self.init(secrets, addresses, configuration, engine, provider, nil, refusesCalls: refusesCalls)
    }

    /// A service whose calls are shown by other processes of the group, each a `ScreenClient`: they may connect while the core runs.
    ///
    /// - Parameters:
    ///   - secrets: Where the secrets are of accounts that name no other place.
    ///   - otherSecrets: The other places, by the names that accounts have for them (`GroupAccount.secretStore`).
    ///   - addresses: The accounts that are used; nil uses all.
    ///   - configuration: Where the phone is, and what it offers; the instance is the group's.
    ///   - engine: Makes the sound of calls.
    ///   - group: The group of the screens.
    public init(
        secrets: any SecretStore,
        otherSecrets: [String: any SecretStore] = [:],
        accounts addresses: Set<String>? = nil,
        _ configuration: PhoneConfiguration = PhoneConfiguration(),
        engine: CallEngine,
        screensIn group: GroupContainer
    ) {
        let secrets = SecretStores(usual: secrets, others: otherSecrets)
        self.init(secrets, addresses, configuration, engine, nil, group, refusesCalls: false)
    }

    private init(
        _ secrets: SecretStores,
        _ addresses: Set<String>?,
        _ configuration: PhoneConfiguration,
        _ engine: CallEngine?,
        _ provider: (any CallProvider)?,
        _ screenGroup: GroupContainer?,
        refusesCalls: Bool
    ) {
        (self.secrets, self.configuration, self.engine, self.provider) = (secrets, configuration, engine, provider)
        (self.addresses, self.screenGroup, self.refusesCalls) = (addresses, screenGroup, refusesCalls)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1024))
    }

    deinit { continuation.finish() }

    /// The phone of the core that runs; nil while none does.
    public var current: Phone? { phone }

    // MARK: The core

    /// Opens the phone; the accounts are registered by `fetchPending`.
    ///
    /// - Throws: `PhoneError` when the port is another's; `ServerError` when the screens are; `EngineError`; `StoreError`
    public func start(_ context: CoreContext) async throws {
        guard let store = context.store else {
            throw PhoneError(.state, "A core without a store has no accounts. Start it in a group.")
        }
        var configuration = configuration
        configuration.instance = try await Self.instance(in: store, as: context.epoch)
        let kept = try await store.kept(Self.memoryName)
        memories = kept.flatMap { try? JSONDecoder().decode([String: [DigestMemory]].self, from: Data($0)) } ?? [:]
        let engine: CallEngine
        if let given = self.engine {
            engine = given
        } else {
            // It never ticks: nothing is answered.
            engine = try CallEngine(.virtual())
            ownEngine = engine
        }
        rooms = try await KeptRoom.all(in: store)
        let keepText: @Sendable (PhoneText) async throws -> Void = { [weak self] text in
            try await context.deliver(IncomingMessage(text))
            await self?.noteMessage()
        }
        let keepInvitation: @Sendable (PhoneInvitation) async throws -> Void = { [weak self] invitation in
            try await context.deliver(RoomInvitation(invitation))
            await self?.noteMessage()
        }
        let screens = screenGroup.map { _ in ScreenServer() }
        let phone = try await Phone(
            engine,
            configuration,
            provider: screens ?? provider,
            keepingTexts: keepText,
            keepingInvitations: keepInvitation
        )
        if let screens, let screenGroup {
            do { try await screens.open(for: phone, in: screenGroup) } catch {
                await phone.close(keepingBindings: true)
                throw error
            }
            self.screens = screens
        }
        await phone.watchCalls { context.setInCall($0) }
        // What is to be sent for one waits until it is registered.
        for account in try await store.accounts() where addresses?.contains(account.address) ?? true {
            standing[account.address] = .pending
        }
        (self.context, self.phone) = (context, phone)
        receipts = ReceiptSender(phone, store, as: context.epoch) { [weak self] in await self?.isUsable($0) ?? false }
        listening = Task { [weak self] in for await event in phone.events { await self?.handle(event) } }
    }

    /// Registers all accounts and waits for what their servers have kept: until it has been quiet for half a second.
    ///
    /// No server says that there is no more.
    public func fetchPending() async throws {
        let (phone, context) = try running()
        guard let store = context.store else { return }
        for account in try await accounts(of: store) { register(account, phone) }
        quietUntil = .now
        while true {
            try Task.checkCancellation()
            let count = changed.count
            let isPending = standing.values.contains { $0 == .pending }
            if !isPending, quietUntil <= .now { break }
            await changed.wait(after: count, until: isPending ? .now + .seconds(3600) : quietUntil)
        }
        await receipts?.send()
    }

    /// Stays registered, and sends the receipts of what comes.
    public func run() async throws {
        _ = try running()
        while true {
            let count = changed.count
            try Task.checkCancellation()
            await receipts?.send()
            await changed.wait(after: count, until: .now + .seconds(3600))
        }
    }

    /// Sends a reply, or that a message was seen.
    ///
    /// A reply has the identifier of its action, so that one which is sent twice is told by who gets it, where that names its own
    /// messages. One that is refused is over, but for 408 and 503; one that nobody answers, or whose account is not registered, is
    /// tried again.
    public func perform(_ action: MessageAction) async throws {
        let (phone, context) = try running()
        guard let store = context.store else { return }
        // Nobody knows any more whom it is for.
        guard let message = try await store.message(callID: action.callID)?.message else { return }
        switch action.kind {
        case .reply(let text):
            try await registered(message.account)
            do {
                try await phone.sendText(
                    text,
                    to: message.room ?? message.sender,
                    from: message.account,
                    id: message.messageID == nil ? nil : action.id
                )
            } catch let error as PhoneError where error.isFinalForText {
                throw ActionRefusal(error.message)
            }
        case .markAsSeen:
            try await store.queueDisplayed(callID: action.callID, as: context.epoch)
            await receipts?.send().value
        }
    }

    /// Registers all accounts anew, twice a second at most: a server that keeps a text for a phone which it takes for asleep sends it
    /// then.
    public func fetchSoon() {
        guard phone != nil, !isFetchPlanned else { return }
        isFetchPlanned = true
        let wait = max(lastFetch + Self.quiet.registration - .now, .zero)
        Task {
            try? await Task.sleep(for: wait)
            await fetchNow()
        }
    }

    private func fetchNow() async {
        (isFetchPlanned, lastFetch) = (false, .now)
        await phone?.refreshRegistrations()
    }

    /// Registers an account as it is now, or no more.
    public func accountChanged(_ address: String) async {
        guard let phone, let store = context?.store else { return }
        let accounts = (try? await accounts(of: store)) ?? []
        if let account = accounts.first(where: { $0.address == address }) {
            register(account, phone)
        } else {
            standing[address] = nil
            await phone.unregister(address)
            changed.notify()
        }
    }

    /// Sends the receipts that wait, for two seconds at most, and closes the phone and its screens; the servers go on knowing it.
    public func stop() async {
        guard let phone else { return }
        await receipts?.send()
        await receipts?.wait(.seconds(2))
        for call in waitingCalls { await call.reject(status: 480) }
        waitingCalls = []
        if let context, let bytes = try? JSONEncoder().encode(await phone.digestMemories) {
            try? await context.store?.keep(Array(bytes), as: Self.memoryName, context.epoch)
        }
        (self.phone, receipts) = (nil, nil)
        await phone.close(keepingBindings: true)
        // The calls that have just ended are written down yet.
        await listening?.value
        context = nil
        // Before the core that follows opens its own.
        await screens?.close()
        await ownEngine?.shutDown()
        (listening, screens, ownEngine, standing) = (nil, nil, nil, [:])
        changed.notify()
    }

    func running() throws -> (Phone, CoreContext) {
        // Stopped, or never started: there is nobody to deliver to.
        guard let phone, let context else { throw CancellationError() }
        return (phone, context)
    }

    /// The instance of the group, which is made once.
    package static func instance(in store: SharedStore, as epoch: Epoch) async throws -> String {
        if let kept = try await store.kept(instanceName) {
            let text = String(decoding: kept, as: UTF8.self)
            if CallUUID(text) != nil { return text }
        }
        let made = "\(CallUUID())"
        try await store.keep(Array(made.utf8), as: instanceName, epoch)
        return made
    }

    // MARK: What happens

    private func handle(_ event: PhoneEvent) async {
        switch event {
        case .registered(let address): await note(address, .registered)
        case .unregistered(let address, let error):
            await note(address, error.isFinal || error.isOfPassword ? .refused : .pending, reason: error.message)
        case .incoming(let call) where engine == nil:
            if refusesCalls { await call.reject(status: 480) } else { await keep(call) }
        case .room(let room): await note(room)
        case .logged(let entry):
            waitingCalls.removeAll { $0.callID == entry.id }
            try? await context?.recordCall(CallRecord(entry))
        default: break
        }
        continuation.yield(event)
    }

    /// Lets a call wait for who may answer it, and writes down that it came.
    private func keep(_ call: PhoneCall) async {
        waitingCalls.append(call)
        try? await context?.recordCall(CallRecord(waiting: call))
    }

    // MARK: Rooms

    /// Keeps which rooms there are, for the next process.
    private func note(_ room: PhoneRoom) async {
        guard let context, let store = context.store else { return }
        let isOver = room.state == .terminated
        let kept = KeptRoom(address: room.address, account: room.account, subject: room.subject)
        guard isOver || rooms[room.address] != kept else { return }
        rooms[room.address] = isOver ? nil : kept
        try? await KeptRoom.keep(rooms, in: store, as: context.epoch)
        // Who is invited again hears of it again.
        if isOver { try? await store.removeRoom(address: room.address, as: context.epoch) }
    }

    private func noteMessage() {
        quietUntil = max(quietUntil, .now + Self.quiet.message)
        changed.notify()
    }

    /// Whether an account can send.
    private func isUsable(_ account: String?) -> Bool { account.map { standing[$0] == .registered } ?? true }
}
