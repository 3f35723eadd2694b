internal import CallBasics

/// What a conference server tells of a room: all of it, or what has changed.
///
///     <conference-info xmlns="urn:ietf:params:xml:ns:conference-info" entity="sip:room@example.org" state="full" version="0">
///     <conference-description><subject>Tea</subject></conference-description>
///     <users><user entity="sip:bob@example.org" state="full"><endpoint entity="sip:bob@192.0.2.4" state="full"/></user></users>
///     </conference-info>
///
/// Source: RFC 4575, section 5
package struct ConferenceDocument: Hashable, Sendable {
    /// The type of its body.
    package static let type = "application/conference-info+xml"
    private static let namespace = "urn:ietf:params:xml:ns:conference-info"

    /// Names and subjects are cut behind so many characters; an entity with more bytes is passed over.
    static let textCount = 256
    static let entityByteCount = 1024

    /// What an element is to what was told before.
    package enum State: String, Hashable, Sendable {
        case full, partial, deleted
    }

    package struct User: Hashable, Sendable {
        package let entity: String
        package let state: State
        /// Nil where it is not told.
        package let name: String?
        /// Such as `admin`; nil where they are not told.
        package let roles: [String]?
        package let endpoints: [Endpoint]
    }

    package struct Endpoint: Hashable, Sendable {
        package let entity: String
        package let state: State
        package let name: String?
        /// Such as `connected`; nil where it is not told.
        package let status: String?
    }

    /// The address of the room.
    package let entity: String
    package let state: State
    /// Nil where its sender does not count.
    package let version: UInt32?
    /// Nil where it is not told.
    package let subject: String?
    /// In a partial document those who changed, whatever the state of their list says: servers leave its default, full, there.
    package let users: [User]

    /// Reads a body of the type application/conference-info+xml; of more users or endpoints than `ConferenceState` keeps the rest is
    /// passed over.
    ///
    /// Throws: `badRequest` when it tells nothing of a conference, `messageTooLarge` beyond 64 KiB
    package init(parsing body: Bytes) throws(SIPError) {
        let document = try XMLElement(parsing: body)
        guard document.namespace == Self.namespace, document.name == "conference-info",
            let entity = document.attributes["entity"], let state = Self.state(of: document)
        else { throw Self.refused("tells nothing of a conference") }
        (self.entity, self.state) = (entity, state)
        version = try document.attributes["version"].map { text throws(SIPError) in
            guard let version: UInt32 = Bytes(text).decimal() else {
                throw Self.refused("has a version that is no number")
            }
            return version
        }
        subject = document["conference-description"]?["subject"].map { Self.cut($0.text) }
        var users: [User] = []
        for element in document["users"]?.children ?? []
        where element.namespace == Self.namespace && element.name == "user" {
            guard users.count < ConferenceState.memberLimit else { break }
            if let user = User(element) { users.append(user) }
        }
        self.users = users
    }

    fileprivate static func state(of element: XMLElement) -> State? {
        element.attributes["state"].map { State(rawValue: $0) } ?? .full
    }

    fileprivate static func cut(_ text: String) -> String { String(text.prefix(textCount)) }

    fileprivate static func entity(of element: XMLElement) -> String? {
        element.attributes["entity"].flatMap { !$0.isEmpty && $0.utf8.count <= entityByteCount ? $0 : nil }
    }

    private static func refused(_ what: String) -> SIPError {
        SIPError(.badRequest, "The document \(what). Write it as RFC 4575 says.")
    }
}

extension ConferenceDocument.User {
    /// Nil where it names nobody, or has a state that is none.
    fileprivate init?(_ element: XMLElement) {
        guard let entity = ConferenceDocument.entity(of: element), let state = ConferenceDocument.state(of: element)
        else { return nil }
        (self.entity, self.state) = (entity, state)
        name = element["display-text"].map { ConferenceDocument.cut($0.text) }
        roles = element["roles"].map { roles in
            roles.children.filter { $0.name == "entry" }.prefix(8).map { ConferenceDocument.cut($0.text) }
        }
        let all = element.children.lazy.filter { $0.namespace == element.namespace && $0.name == "endpoint" }
        endpoints = all.prefix(ConferenceState.deviceLimit).compactMap(ConferenceDocument.Endpoint.init)
    }
}

extension ConferenceDocument.Endpoint {
    fileprivate init?(_ element: XMLElement) {
        guard let entity = ConferenceDocument.entity(of: element), let state = ConferenceDocument.state(of: element)
        else { return nil }
        (self.entity, self.state) = (entity, state)
        name = element["display-text"].map { ConferenceDocument.cut($0.text) }
        status = element["status"].map { ConferenceDocument.cut($0.text) }
    }
}
