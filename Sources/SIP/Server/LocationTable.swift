internal import CallBasics

/// Where a user can be reached, until when.
///
/// Source: RFC 3261, section 10.3
struct Binding: Sendable {
    let user: String
    let contact: NameAddress
    /// The REGISTER that made it.
    let callID: Bytes
    let number: UInt32
    /// The way to it, the first proxy first (RFC 3327).
    let path: [NameAddress]
    /// The flow that it was made by; nil when there is a proxy between.
    let flow: Flow?
    /// How it can be woken; nil when it cannot be.
    @Boxed private(set) var push: PushParameters?
    let expiresAt: MediaTime
    /// Counts up: those with a higher one were made later.
    let order: UInt64

    /// The phone, and which of its flows (RFC 5626, section 4.1).
    var instance: Bytes? { contact.parameters.value("+sip.instance") }
    var regID: Bytes? { contact.parameters.value("reg-id") }

    /// How long it lasts yet, begun seconds counted.
    func seconds(at now: MediaTime) -> Int64 { (expiresAt.nanoseconds(since: now) + 999_999_999) / 1_000_000_000 }

    /// Whether requests can be passed on there: an address of mail, or a number, is only told to who asks.
    var isReachable: Bool { contact.uri.scheme == .sip || contact.uri.scheme == .sips }

    /// Whether a Contact is about this binding.
    func isSame(as contact: NameAddress) -> Bool {
        if let instance, let other = contact.parameters.value("+sip.instance"),
            let regID, let otherID = contact.parameters.value("reg-id")
        {
            return instance.isNamed(other) && regID == otherID
        }
        return self.contact.uri.isEquivalent(to: contact.uri)
    }

    /// Whether a Contact takes this binding away: it names no token then, which others must have in common (RFC 8599, section 4.1.2).
    func isSame(asRemoved contact: NameAddress) -> Bool {
        guard let own = try? SIPURI(self.contact.uri.withoutPush), let other = try? SIPURI(contact.uri.withoutPush)
        else {
            return false
        }
        return own.isEquivalent(to: other)
    }
}

/// Names a binding; after its end the name stays unused.
struct BindingName: SlotName {
    let slot: Int
    let serial: UInt64
}

/// The location service: all bindings, by user, by the host and port of their contact, and by their end.
struct LocationTable: Sendable {
    private var bindings = SlotTable<BindingName, Binding>()
    private var namesOfUser: [String: [BindingName]] = [:]
    /// The oldest first: phones behind several NATs may have one private address.
    private var namesOfPlace: [[UInt8]: [BindingName]] = [:]

    var count: Int { bindings.count }
    var deadline: MediaTime? { bindings.deadline }

    /// The bindings of a user, the one that is liked best first, of those the newest.
    func bindings(of user: String) -> [Binding] {
        (namesOfUser[user] ?? []).compactMap { bindings[$0] }.sorted {
            ($0.contact.preference, $0.order) > ($1.contact.preference, $1.order)
        }
    }

    /// The binding with a contact at the user, host and port of a URI: the one with that very URI, else the newest.
    func binding(at uri: SIPURI) -> Binding? {
        let candidates = (namesOfPlace[Self.place(of: uri)] ?? []).compactMap { bindings[$0] }
        return candidates.last { $0.contact.uri.isEquivalent(to: uri) } ?? candidates.last
    }

    mutating func insert(_ binding: Binding) {
        remove(binding.user) { $0.isSame(as: binding.contact) }
        let name = bindings.insert { _ in binding }
        bindings.setDeadline(of: name, to: binding.expiresAt)
        namesOfUser[binding.user, default: []].append(name)
        guard binding.isReachable else { return }
        let place = Self.place(of: binding.contact.uri)
        // Requests within calls go by it: what another user has, or is named like, is not taken from them.
        let owner = namesOfPlace[place]?.last.flatMap { bindings[$0] }?.user ?? binding.user
        if owner == binding.user {
            namesOfPlace[place, default: []].append(name)
        } else if binding.contact.uri.user == binding.user {
            namesOfPlace[place] = [name]
        }
    }

    /// Takes bindings of a user out of every table.
    mutating func remove(_ user: String, where isRemoved: (Binding) -> Bool) {
        for name in namesOfUser[user] ?? [] {
            if let binding = bindings[name], isRemoved(binding) { remove(name) }
        }
    }

    /// A binding whose time is over, taken out.
    mutating func removeExpired(at now: MediaTime) -> Binding? {
        guard let name = bindings.due(at: now) else { return nil }
        let binding = bindings[name]
        remove(name)
        return binding
    }

    private mutating func remove(_ name: BindingName) {
        guard let binding = bindings.remove(name) else { return }
        let left = (namesOfUser[binding.user] ?? []).filter { $0 != name }
        namesOfUser[binding.user] = left.isEmpty ? nil : left
        let place = Self.place(of: binding.contact.uri)
        guard let others = namesOfPlace[place]?.filter({ $0 != name }) else { return }
        namesOfPlace[place] = others.isEmpty ? nil : others
    }

    private static func place(of uri: SIPURI) -> [UInt8] {
        (uri.userBytes ?? []) + [.at] + uri.hostBytes.map(\.lowercase) + ":\(uri.port ?? 0)".utf8
    }
}
