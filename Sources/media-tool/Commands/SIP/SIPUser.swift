import CallCore
import LocalMessaging
import SIP
import SharedCore
import SharedPhone

/// Who a command speaks for: an account of flags, or of a group, whose core it is meanwhile.
struct SIPUser {
    let account: AccountConfiguration
    private let core: MainCore?
    /// No other process has this instance while it is held.
    private let instance: InstanceFile?

    /// Whether the account is a group's, which stays registered for its next core.
    var isOfGroup: Bool { core != nil }

    /// Ends the core of the group, if it has one.
    func leave() async { await core?.stop() }

    /// Whom the options tell of; nil for nobody.
    ///
    /// One who registers has an instance that is kept.
    ///
    /// - Throws: `ToolFailure`, as when the group has no such account; `CoreError` when another main runs there
    static func named(by options: SIPOptions, registers: Bool) async throws -> SIPUser? {
        if let group = options.group { return try await inGroup(group, options.account) }
        guard var account = try options.accountOfFlags() else { return nil }
        guard account.instance == nil, registers else { return SIPUser(account: account, core: nil, instance: nil) }
        let instance = InstanceFile.take(for: "\(account.identity.uri)")
        account.instance = "urn:uuid:\(instance?.uuid ?? CallUUID())"
        return SIPUser(account: account, core: nil, instance: instance)
    }

    private static func inGroup(_ path: String, _ name: String?) async throws -> SIPUser {
        let group = try GroupContainer(directory: path, isCreated: false)
        let accounts = try GroupAccounts.inPlaces(of: group)
        let all = try await accounts.withoutSecrets()
        let fitting = all.filter { name == nil || $0.address == name || $0.displayName == name }
        guard let address = fitting.first?.address, fitting.count == 1, let found = try await accounts.account(address)
        else {
            let known = all.map(\.address).joined(separator: ", ")
            let what = name.map { "\($0.printable) is no account of \(path)" } ?? "\(path) has not one account alone"
            throw ToolFailure("\(what). Give --account one of: \(known.isEmpty ? "none is there" : known).")
        }
        let service = BorrowedCore()
        let core = try MainCore(group: group, service: service) { _ in }
        try await core.start()
        do {
            let instance = try await service.instance()
            let account = try found.phoneAccount().configuration(instance: "urn:uuid:\(instance)")
            return SIPUser(account: account, core: core, instance: nil)
        } catch {
            await core.stop()
            throw error
        }
    }
}

/// A core that serves nothing by itself: the command that runs it is the phone.
private actor BorrowedCore: CoreService {
    private var context: CoreContext?

    func start(_ context: CoreContext) { self.context = context }
    func fetchPending() {}
    func perform(_ action: MessageAction) throws {
        throw ToolFailure("The phone of the group is used by a command, which sends nothing for others.")
    }
    func stop() { context = nil }

    func run() async throws {
        while true { try await Task.sleep(for: .seconds(3600)) }
    }

    /// The instance of the group.
    func instance() async throws -> String {
        guard let context, let store = context.store else { throw CancellationError() }
        return try await SIPService.instance(in: store, as: context.epoch)
    }
}
