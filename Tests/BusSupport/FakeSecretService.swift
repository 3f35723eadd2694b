import DesktopBus
import Synchronization

/// A Secret Service with one keyring, which does what a test wants.
package final class FakeSecretService: Sendable {
    /// What a person does who is asked for the password of the keyring.
    package enum Person: Sendable {
        case gives, refuses
        /// Does nothing.
        case waits
    }

    /// An item of the keyring.
    package struct Item: Sendable {
        package let label: String
        package let attributes: [String: String]
        package var secret: [UInt8]
        package let type: String
    }

    fileprivate struct State {
        var items: [String: Item] = [:]
        var person = Person.gives
        var isLocked = false
        var hasKeyring = true
        var asksBeforeItems = false
        var madeCount = 0
        var members: [String] = []
        var wrong: [String: BusPeer.Answer] = [:]
        /// What waits for a person, by the prompt.
        var wanted: [String: BusPeer.Call] = [:]
    }

    fileprivate final class Service: Sendable { let state = Mutex(State()) }

    private let peer: BusPeer
    private let service: Service

    /// A service at a bus, where it has its name when this returns.
    package init(_ bus: PrivateBus) throws {
        let service = Service()
        self.service = service
        peer = try BusPeer(clientOf: bus.address) { service.answer($0) }
        try peer.request(name: Self.name)
    }

    /// What is kept.
    package var items: [Item] { service.state.withLock { Array($0.items.values) } }
    /// The methods that were called, in order.
    package var members: [String] { service.state.withLock(\.members) }

    /// Locks the keyring; who wants in has a person asked.
    package func lock(_ person: Person) {
        service.state.withLock { ($0.isLocked, $0.person) = (true, person) }
    }

    /// Has a person asked before an item is made or deleted.
    package func askBeforeItems(_ person: Person = .gives) {
        service.state.withLock { ($0.asksBeforeItems, $0.person) = (true, person) }
    }

    /// Takes the keyring away.
    package func removeKeyring() { service.state.withLock { $0.hasKeyring = false } }

    /// Puts an item into the keyring.
    package func add(_ secret: [UInt8], _ attributes: [String: String]) {
        let item = Item(label: "", attributes: attributes, secret: secret, type: "text/plain")
        service.state.withLock { _ = $0.add(item) }
    }

    /// Answers a method so from now on.
    package func answer(_ member: String, _ answer: BusPeer.Answer) {
        service.state.withLock { $0.wrong[member] = answer }
    }

    /// The prompts that wait for a person.
    package var prompts: [String] { service.state.withLock { Array($0.wanted.keys) } }

    /// Says that a prompt is over, the keyring being unlocked unless a person has refused.
    package func complete(_ prompt: String, isDismissed: Bool) throws {
        if !isDismissed { service.state.withLock { $0.isLocked = false } }
        try peer.signal(State.completion(of: prompt, isDismissed, .string("")))
    }

    /// Gives its name back and ends.
    package func end() async throws {
        peer.release(name: Self.name)
        try await peer.end()
    }

    package static let name = "org.freedesktop.secrets"
    package static let session = "/org/freedesktop/secrets/session/s1"
}

extension FakeSecretService.Service {
    func answer(_ call: BusPeer.Call) -> BusPeer.Answer { state.withLock { $0.answer(call) } }
}

extension FakeSecretService.State {
    private static let keyring = "/org/freedesktop/secrets/collection/login"
    private static let denied = BusPeer.Answer.error("org.freedesktop.DBus.Error.InvalidArgs")

    mutating func answer(_ call: BusPeer.Call) -> BusPeer.Answer {
        members.append(call.member)
        if let wrong = wrong[call.member] { return wrong }
        switch call.member {
        case "OpenSession":
            guard call.body == [.string("plain"), .variant(.string(""))] else {
                return .error("org.freedesktop.DBus.Error.NotSupported")
            }
            return .values([.variant(.string("")), .path(FakeSecretService.session)])
        case "SearchItems":
            guard let wanted = call.body.first?.texts else { return Self.denied }
            let found = items.filter { item in wanted.allSatisfy { item.value.attributes[$0.key] == $0.value } }
            let paths = BusValue.paths(found.keys.sorted())
            return .values(isLocked ? [.paths([]), paths] : [paths, .paths([])])
        case "ReadAlias":
            guard call.body == [.string("default")] else { return Self.denied }
            return .values([.path(hasKeyring ? Self.keyring : "/")])
        case "Unlock":
            return isLocked ? .values([.paths([]), .path(prompt(for: call))]) : .values(perform(call))
        case "CreateItem", "Delete":
            guard !isLocked else { return .error("org.freedesktop.Secret.Error.IsLocked") }
            if call.member == "Delete", items[call.path] == nil {
                return .error("org.freedesktop.Secret.Error.NoSuchObject")
            }
            guard asksBeforeItems else { return .values(perform(call)) }
            let prompt = BusValue.path(prompt(for: call))
            return .values(call.member == "Delete" ? [prompt] : [.path("/"), prompt])
        case "GetSecret":
            guard !isLocked else { return .error("org.freedesktop.Secret.Error.IsLocked") }
            guard let item = items[call.path], call.body == [.path(FakeSecretService.session)] else {
                return .error("org.freedesktop.Secret.Error.NoSession")
            }
            return .values([Self.structure(item.secret)])
        case "Prompt":
            guard let wanted = wanted[call.path] else { return Self.denied }
            switch person {
            case .waits: return .values([])
            case .refuses: return .valuesAndSignal([], Self.completion(of: call.path, true, .string("")))
            case .gives:
                isLocked = false
                let result = perform(wanted).first ?? .string("")
                return .valuesAndSignal([], Self.completion(of: call.path, false, result))
            }
        case "Dismiss":
            wanted[call.path] = nil
            return .values([])
        default: return .error("org.freedesktop.DBus.Error.UnknownMethod")
        }
    }

    private mutating func prompt(for call: BusPeer.Call) -> String {
        madeCount += 1
        let path = "/org/freedesktop/secrets/prompt/p\(madeCount)"
        wanted[path] = call
        return path
    }

    /// Does what needs nobody any more, and gives what the method returns.
    private mutating func perform(_ call: BusPeer.Call) -> [BusValue] {
        switch call.member {
        case "Unlock": return [call.body.first ?? .paths([]), .path("/")]
        case "Delete":
            items[call.path] = nil
            return [.path("/")]
        default:
            let properties = call.body.first?.dictionary ?? [:]
            let attributes = properties["org.freedesktop.Secret.Item.Attributes"]?.texts ?? [:]
            let parts = call.body.dropFirst().first?.structure ?? []
            guard parts.count == 4, parts[0] == .path(FakeSecretService.session), call.body.last == .bool(true) else {
                return []
            }
            let item = FakeSecretService.Item(
                label: properties["org.freedesktop.Secret.Item.Label"]?.string ?? "",
                attributes: attributes,
                secret: parts[2].bytes ?? [],
                type: parts[3].string ?? ""
            )
            return [.path(add(item)), .path("/")]
        }
    }

    /// Puts an item in the place of the one with the same attributes, and gives its path.
    mutating func add(_ item: FakeSecretService.Item) -> String {
        madeCount += 1
        let path = items.first { $0.value.attributes == item.attributes }?.key ?? "\(Self.keyring)/\(madeCount)"
        items[path] = item
        return path
    }

    static func structure(_ secret: [UInt8]) -> BusValue {
        .structure([.path(FakeSecretService.session), .bytes([]), .bytes(secret), .string("text/plain")])
    }

    static func completion(of prompt: String, _ isDismissed: Bool, _ result: BusValue) -> BusPeer.Signal {
        BusPeer.Signal(
            prompt,
            "org.freedesktop.Secret.Prompt",
            "Completed",
            [.bool(isDismissed), .variant(result)]
        )
    }
}
