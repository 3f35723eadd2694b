import CallBasics
import SIPTesting
import Testing

@testable import SIP

/// A conference server by hand, at 192.0.2.99, and one agent, alice: it sees what she sends, and gives her what a test wants.
struct ConferenceServer {
    static let room = "sip:tea@192.0.2.99"
    /// The Contact of the room: a device of its server.
    static let focus = "<\(room);gr=1a2b>;isfocus;text"
    private static let address = SocketAddress(ipv4: 0xC000_0263, port: 5060)

    var world = VirtualNetwork()
    /// Where she is.
    var home = SocketAddress(ipv4: 0xC000_0201, port: 5060)
    /// What becomes of its messages on their way to her.
    var spoil: ([UInt8]) -> [UInt8] = { $0 }
    private var count = 0
    /// The dialog of the room's call, as the server has it.
    private var call: (local: String, remote: String, id: String)?

    init(_ change: (inout AgentConfiguration) -> Void = { _ in }) throws {
        _ = try world.add("alice", change)
    }

    // MARK: What alice sends

    /// Her requests of a method, repeats not among them.
    func requests(_ method: String) throws -> [SIPMessage] {
        var known: Set<[UInt8]> = []
        return try world.sent.filter { $0.startLine.hasPrefix(method + " ") && known.insert($0.bytes).inserted }
            .map { try SIPMessage(datagram: $0.bytes) }
    }

    func last(_ method: String) throws -> SIPMessage { try Self.found(requests(method).last, method) }

    /// What is missing is an error, which a test of what is spoiled passes over.
    private static func found<Found>(_ found: Found?, _ name: String) throws -> Found {
        guard let found else { throw SIPError(.badRequest, "There is no \(name).") }
        return found
    }

    /// Her last response to a method.
    func response(_ method: String) throws -> SIPMessage {
        let all = try world.sent.filter { $0.startLine.hasPrefix("SIP/2.0") }.map { try SIPMessage(datagram: $0.bytes) }
        return try Self.found(all.last { (try? $0.cSeq()?.method.name) == method }, "response to \(method)")
    }

    // MARK: What she gets

    mutating func give(_ message: SIPMessage) {
        world.handle(.datagram(spoil(message.bytes), local: home, remote: Self.address), at: .agent(0))
        world.run(for: .milliseconds(50))
    }

    /// Answers her last request of a method.
    mutating func answer(_ method: String, _ status: Int = 200, contact: String? = nil, _ headers: (String, String)...)
        throws
    {
        let request = try last(method)
        count += 1
        let tag = try request.to()?.tag?.text ?? "s\(count)"
        var response = try request.response(status: status, reason: "x", tag: Bytes(tag))
        if let contact { try response.append(.contact, Bytes(contact)) }
        for header in headers { try response.append(named: header.0, header.1) }
        if method == "INVITE", status < 300 {
            call = ("<sip:tea@192.0.2.99>;tag=\(tag)", request.first(.from)?.text ?? "", request.callID?.text ?? "")
        }
        give(response)
    }

    private mutating func request(_ method: SIPMethod, from: String, to: String, id: String) throws -> SIPMessage {
        count += 1
        var request = SIPMessage(method, to: try SIPURI("sip:alice@192.0.2.1"))
        let branch = Bytes("z9hG4bKs\(count)")
        try request.append(.via, Via(transport: Bytes("UDP"), host: Bytes("192.0.2.99"), port: 5060, branch: branch))
        try request.append(.from, Bytes(from))
        try request.append(.to, Bytes(to))
        try request.append(.callID, Bytes(id))
        try request.append(.cSeq, CSeq(UInt32(count), method))
        return request
    }

    /// Invites her to the room.
    @discardableResult
    mutating func invite(
        contact: String = focus,
        from: String = "\"Bob\" <sip:bob@example.org;gr=77>",
        subject: String? = "Tea",
        type: String = ResourceList.type,
        body: String = ""
    ) throws -> SIPMessage {
        let from = "\(from);tag=i\(count)"
        var invite = try request(.invite, from: from, to: "<sip:alice@192.0.2.1>", id: "invite-\(count)")
        try invite.append(.contact, Bytes(contact))
        if let subject { try invite.append(.subject, Bytes(subject)) }
        if !body.isEmpty { try invite.set(.contentType, to: Bytes(type)) }
        invite.setBody(Array(body.utf8))
        give(invite)
        return invite
    }

    /// Acknowledges her answer to the last INVITE.
    mutating func acknowledge(_ invite: SIPMessage) throws {
        let answer = try response("INVITE")
        let to = answer.first(.to)?.text ?? ""
        call = (invite.first(.from)?.text ?? "", to, invite.callID?.text ?? "")
        var ack = try request(.ack, from: call?.local ?? "", to: to, id: call?.id ?? "")
        try ack.set(.cSeq, to: CSeq(try invite.cSeq()?.number ?? 0, .ack))
        give(ack)
    }

    /// Sends a request within the call of the room.
    mutating func within(_ method: SIPMethod, _ headers: (String, String)...) throws {
        let call = try Self.found(call, "call")
        var made = try request(method, from: call.local, to: call.remote, id: call.id)
        try made.append(.contact, Bytes(Self.focus))
        for header in headers { try made.append(named: header.0, header.1) }
        give(made)
    }

    /// Takes her SUBSCRIBE, and tells what the room is like.
    mutating func notify(
        _ document: String,
        _ state: String = "active;expires=3600",
        type: String = ConferenceDocument.type
    )
        throws
    {
        let subscribe = try last("SUBSCRIBE")
        let to = subscribe.first(.from)?.text ?? ""
        let id = subscribe.callID?.text ?? ""
        var notify = try request(.notify, from: "<\(Self.room)>;tag=n", to: to, id: id)
        try notify.append(.contact, Bytes(Self.focus))
        try notify.append(.event, Bytes("conference"))
        try notify.append(.subscriptionState, Bytes(state))
        if !document.isEmpty { try notify.set(.contentType, to: Bytes(type)) }
        notify.setBody(Array(document.utf8))
        give(notify)
    }

    /// Sends on what a member has written.
    mutating func message(from author: String, _ text: String, sender: String = room) throws {
        var message = try request(.message, from: "<\(sender)>;tag=m", to: "<sip:alice@192.0.2.1>", id: "text-\(count)")
        let body = [
            "From: \(author)", "To: <\(sender)>", "DateTime: 2024-05-01T10:00:00Z", "NS: imdn <urn:ietf:params:imdn>",
            "imdn.Message-ID: m\(count)", "", "Content-Type: text/plain", "", text,
        ]
        try message.set(.contentType, to: Bytes("message/cpim"))
        message.setBody(Array(body.joined(separator: "\r\n").utf8))
        give(message)
    }

    /// A document about the room.
    static func document(_ state: String, _ version: Int, subject: String? = nil, _ users: String = "") -> String {
        let description = subject.map { "<conference-description><subject>\($0)</subject></conference-description>" }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <conference-info xmlns="urn:ietf:params:xml:ns:conference-info" entity="\(room)" state="\(state)" version="\(version)">
            \(description ?? "")<users>\(users)</users></conference-info>
            """
    }

    static func user(_ address: String, state: String = "full", _ inner: String = "") -> String {
        "<user entity=\"\(address)\" state=\"\(state)\">\(inner)</user>"
    }

    // MARK: What she tells

    mutating func words() -> [String] { world.words(0) }

    /// The room that she has told of last.
    func handle() throws -> RoomHandle {
        let handles: [RoomHandle] = world.nodes[0].events.compactMap {
            if case .room(let handle, _) = $0 { handle } else { nil }
        }
        return try Self.found(handles.last, "room")
    }

    /// Nothing is left of rooms and their calls.
    mutating func expectEmpty(_ sourceLocation: SourceLocation = #_sourceLocation) {
        world.run(for: .seconds(100))
        var counts = world.nodes[0].agent.counts
        (counts.flows, counts.lookups.kept) = (FlowCounts(), 0)
        #expect(counts == AgentCounts(), sourceLocation: sourceLocation)
    }

    /// Invites Alice, and has her accept.
    @discardableResult
    mutating func join() throws -> RoomHandle {
        let invite = try invite()
        let handle = try handle()
        world.with(0) { agent, now in agent.acceptRoom(handle, at: now) }
        world.run(for: .milliseconds(50))
        try acknowledge(invite)
        return handle
    }
}
