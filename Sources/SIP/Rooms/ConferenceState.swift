/// What is known of a room: what its documents add up to.
///
///     full ──► all that was known is replaced
///     partial, version + 1 ──► changes; a later version: some are missing, and all has to be asked for
///
/// Source: RFC 4575, section 4.6
package struct ConferenceState: Hashable, Sendable {
    /// Members beyond these are not kept, nor devices of one beyond those.
    package static let memberLimit = 1024
    package static let deviceLimit = 32

    package struct Member: Hashable, Sendable {
        /// As the server writes it.
        package let address: String
        package var name: String?
        /// Such as `admin`.
        package var roles: [String] = []
        package var devices: [Device] = []
    }

    package struct Device: Hashable, Sendable {
        package let address: String
        package var name: String?
        /// Such as `connected`; nil where it is not told.
        package var status: String?
    }

    /// What a document is to what was known.
    package enum Outcome: Hashable, Sendable {
        case taken
        /// It tells what is known already.
        case old
        /// Others before it did not come: all has to be asked for.
        case gap
        /// There is no such room any more.
        case over
    }

    /// The version of the last document; nil where the next one has to tell all.
    package private(set) var version: UInt32?
    /// Whether a document without a version has told all.
    private var isComplete = false
    package private(set) var subject: String?
    /// In the order in which they were told.
    package private(set) var members: [Member] = []

    package init() {}

    /// The next document has to tell all, whatever its version: who tells is asked anew.
    package mutating func expectAll() { (version, isComplete) = (nil, false) }

    /// Takes a document, if it is its turn.
    package mutating func take(_ document: ConferenceDocument) -> Outcome {
        switch document.state {
        case .deleted: return .over
        case .full:
            if let version, let next = document.version, next <= version { return .old }
            (subject, members) = (document.subject, [])
            for user in document.users where user.state != .deleted { put(user) }
            isComplete = true
        case .partial:
            guard isComplete else { return .gap }
            if let version, let next = document.version {
                guard next > version else { return .old }
                guard next == version + 1 else {
                    expectAll()
                    return .gap
                }
            }
            if let told = document.subject { subject = told }
            for user in document.users { merge(user) }
        }
        version = document.version ?? version
        return .taken
    }

    private mutating func merge(_ user: ConferenceDocument.User) {
        switch user.state {
        case .full: put(user)
        case .deleted: members.removeAll { $0.address == user.entity }
        case .partial:
            guard let place = members.firstIndex(where: { $0.address == user.entity }) else { return put(user) }
            if let name = user.name { members[place].name = name }
            if let roles = user.roles { members[place].roles = roles }
            for endpoint in user.endpoints { members[place].merge(endpoint) }
        }
    }

    private mutating func put(_ user: ConferenceDocument.User) {
        var member = Member(address: user.entity, name: user.name, roles: user.roles ?? [])
        for endpoint in user.endpoints { member.merge(endpoint) }
        if let place = members.firstIndex(where: { $0.address == user.entity }) {
            members[place] = member
        } else if members.count < Self.memberLimit {
            members.append(member)
        }
    }
}

extension ConferenceState.Member {
    fileprivate mutating func merge(_ endpoint: ConferenceDocument.Endpoint) {
        let place = devices.firstIndex { $0.address == endpoint.entity }
        guard endpoint.state != .deleted else {
            if let place { devices.remove(at: place) }
            return
        }
        let former = endpoint.state == .partial ? place.map { devices[$0] } : nil
        let device = ConferenceState.Device(
            address: endpoint.entity,
            name: endpoint.name ?? former?.name,
            status: endpoint.status ?? former?.status
        )
        if let place {
            devices[place] = device
        } else if devices.count < ConferenceState.deviceLimit {
            devices.append(device)
        }
    }
}
