internal import CallBasics
internal import SIP

/// Chat rooms at conference servers.
///
///     createRoom, or an invitation that was kept ──► created ──leaveRoom──► terminated
///                                                       └─ members, subject: events
///
/// A text for a room goes to its address, by `sendText`; one that comes from it names it in `PhoneText.room`.
/// Source: RFC 4579; RFC 4575; RFC 5366
extension Phone {
    /// The rooms that this side is a member of, as they are now, by address.
    public var rooms: [PhoneRoom] { openRooms.values.sorted { $0.address < $1.address } }

    /// Has a conference server make a room, and waits until it is made.
    ///
    /// - Parameters:
    ///   - factory: The address at which the server makes rooms, such as `sip:conference-factory@example.org`.
    ///   - subject: What it is about; empty says nothing.
    ///   - members: Who is invited; 1 to 1024 addresses.
    ///   - account: The address of the account that makes it; nil for the first one, or none.
    /// - Returns: The address of the room.
    /// - Throws: `PhoneError` when it is refused, or nobody answers within a minute
    @discardableResult
    public func createRoom(
        at factory: String,
        subject: String,
        members: [String],
        from account: String? = nil
    ) async throws -> String {
        let target = try PhoneError.uri(factory)
        var invited: [SIPURI] = []
        for member in members { invited.append(try PhoneError.uri(member)) }
        let addresses = invited
        let sender = try account.map(handle) ?? accounts.first?.handle
        guard !isClosed else { throw Self.closed }
        let room = try PhoneError.wrapping(.invalid) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in
                try agent.createRoom(at: target, subject: subject, members: addresses, account: sender, at: now)
            }
        }
        // What comes of it, comes in turns after this one.
        drafts[room] = (subject.isEmpty ? nil : subject, members)
        return try await withCheckedThrowingContinuation { creating[room] = $0 }
    }

    /// Takes up a room that a former process was in; its server then tells what it is like, once the account is registered.
    ///
    /// - Parameters:
    ///   - address: The address of the room.
    ///   - subject: What it was about, until its server has told.
    ///   - account: The address of the account that is a member; nil for the first one, or none.
    /// - Throws: `PhoneError` when there is no such account, or the room is open already
    public func openRoom(_ address: String, subject: String? = nil, from account: String? = nil) throws(PhoneError) {
        let uri = try PhoneError.uri(address)
        let member = try account.map(handle) ?? accounts.first?.handle
        guard !isClosed else { throw Self.closed }
        let room = try PhoneError.wrapping(.state) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in try agent.openRoom(uri, account: member, at: now) }
        }
        openRooms[room] = made(room, subject: subject, members: [])
        tell(room)
    }

    /// Takes up a room unless it is open.
    func reopen(_ address: String, subject: String?, from account: String) {
        guard let uri = try? SIPURI(address), act({ agent, _ in agent.room(at: uri) }) == nil else { return }
        // Of an account that is here, and an address that was used already, nothing else can be said.
        try? openRoom(address, subject: subject, from: account)
    }

    /// Leaves a room, and waits until its server has taken that.
    ///
    /// - Throws: `PhoneError` when this side is in no such room, or the server refuses, or does not answer: then it is still a member
    public func leaveRoom(_ address: String) async throws {
        let room = try room(at: address)
        guard leaving[room] == nil else {
            throw PhoneError(.state, "\(address) is being left already. Wait for that.")
        }
        act { agent, now in agent.leaveRoom(room, at: now) }
        try await withCheckedThrowingContinuation { leaving[room] = $0 }
    }

    /// Has the server of a room invite more people, one after the other, and waits until it has taken all.
    ///
    /// That they are in it `events` tells.
    /// - Throws: `PhoneError` when this side is in no such room, or the server refuses one, or does not answer
    public func addMembers(_ members: [String], to address: String) async throws {
        for member in members { try await refer(member, to: address, isRemoved: false) }
    }

    /// Has the server of a room remove somebody, and waits until it has taken that.
    ///
    /// - Throws: as `addMembers`
    public func removeMember(_ member: String, from address: String) async throws {
        try await refer(member, to: address, isRemoved: true)
    }

    private func refer(_ member: String, to address: String, isRemoved: Bool) async throws {
        let (uri, room) = (try PhoneError.uri(member), try room(at: address))
        let errand = try PhoneError.wrapping(.state) { () throws(SIPError) in
            try act { agent, now throws(SIPError) in
                try agent.refer(uri, to: room, isRemoved: isRemoved, at: now)
            }
        }
        if let problem = await wait(for: errand, of: "The change of \(address)").problem { throw problem }
    }

    private func room(at address: String) throws(PhoneError) -> RoomHandle {
        let uri = try PhoneError.uri(address)
        guard !isClosed else { throw Self.closed }
        guard let room = act({ agent, _ in agent.room(at: uri) }), openRooms[room] != nil else {
            throw PhoneError(.state, "This side is not in the room \(address). Make it, or open it first.")
        }
        return room
    }

    /// Whether an address is that of a room that this side is in.
    func isRoom(_ uri: SIPURI) -> Bool {
        act { agent, _ in agent.room(at: uri) }.map { openRooms[$0] != nil } ?? false
    }

    private func made(_ room: RoomHandle, subject: String?, members: [PhoneRoom.Member]) -> PhoneRoom {
        let (address, account) = act { agent, _ in (agent.address(of: room), agent.account(of: room)) }
        return PhoneRoom(
            address: address?.description ?? "",
            account: accounts.first { $0.handle == account }?.address,
            subject: subject,
            members: members,
            state: .created
        )
    }

    // MARK: What the agent tells

    func handle(_ event: RoomEvent, of room: RoomHandle) {
        switch event {
        case .invited(let invite): consider(invite, room)
        case .stage(let stage): note(stage, of: room)
        case .changed(let state):
            openRooms[room]?.subject = state.subject
            openRooms[room]?.members = state.members.map { PhoneRoom.Member($0) }
            openRooms[room]?.isFollowed = true
            tell(room)
        case .unfollowed:
            openRooms[room]?.isFollowed = false
            tell(room)
        }
    }

    private func tell(_ room: RoomHandle) { if let state = openRooms[room] { continuation.yield(.room(state)) } }

    /// Answers an invitation, once it is kept, or told.
    private func consider(_ invite: RoomInvite, _ room: RoomHandle) {
        let account = act { agent, _ in agent.account(of: room) }
        let invitation = PhoneInvitation(invite, account: accounts.first { $0.handle == account }?.address)
        drafts[room] = (invitation.subject, invitation.members)
        guard let keepInvitation else {
            var isTold = false
            if case .enqueued = continuation.yield(.invitation(invitation)) { isTold = true }
            return answerInvitation(room, isKept: isTold)
        }
        Task { [weak self] in
            var isKept = true
            do { try await keepInvitation(invitation) } catch { isKept = false }
            await self?.answerInvitation(room, isKept: isKept)
        }
    }

    private func answerInvitation(_ room: RoomHandle, isKept: Bool) {
        act { agent, now in
            if isKept { agent.acceptRoom(room, at: now) } else { agent.refuseRoom(room, status: 480, at: now) }
        }
    }

    private func note(_ stage: RoomStage, of room: RoomHandle) {
        switch stage {
        case .invited, .creationPending: break
        case .created:
            if openRooms[room] == nil {
                let draft = drafts.removeValue(forKey: room)
                let members = (draft?.members ?? []).map { PhoneRoom.Member(address: $0) }
                openRooms[room] = made(room, subject: draft?.subject, members: members)
            }
            openRooms[room]?.state = .created
            tell(room)
            creating.removeValue(forKey: room)?.resume(returning: openRooms[room]?.address ?? "")
        case .creationFailed(let end):
            drafts[room] = nil
            creating.removeValue(forKey: room)?.resume(throwing: problem(end))
        case .terminationPending:
            openRooms[room]?.state = .terminationPending
            tell(room)
        case .terminationFailed(let status):
            openRooms[room]?.state = .terminationFailed
            tell(room)
            let problem =
                status.map {
                    PhoneError(.refused(status: $0), "The server of the room does not let this side go: \($0).")
                }
                ?? PhoneError(.unanswered, securityFailure ?? "The server of the room does not answer.")
            leaving.removeValue(forKey: room)?.resume(throwing: problem)
        case .terminated:
            drafts[room] = nil
            openRooms[room]?.state = .terminated
            tell(room)
            openRooms[room] = nil
            leaving.removeValue(forKey: room)?.resume()
        case .forgotten:
            (drafts[room], openRooms[room]) = (nil, nil)
            let problem = PhoneError(
                .state,
                "The account of the room was unregistered meanwhile. Register it, and leave the room then."
            )
            leaving.removeValue(forKey: room)?.resume(throwing: problem)
            let unmade = PhoneError(
                .state,
                "The account was unregistered before the room was made. Register it, and make the room then."
            )
            creating.removeValue(forKey: room)?.resume(throwing: unmade)
        }
    }

    private func problem(_ end: CallEnd) -> PhoneError {
        if case .refused(let status) = end.cause {
            let words = "\(status) \(end.response?.reasonPhrase ?? "")"
            return PhoneError(.refused(status: status), "The room was refused: \(words).")
        }
        if end.cause == .unacceptable {
            return PhoneError(.invalid, "The other side makes no rooms. Ask a factory of rooms.")
        }
        return PhoneError(.unanswered, securityFailure ?? "Nobody has made the room.")
    }

    /// Nothing more comes of rooms.
    func closeRooms() {
        for waiter in creating.values { waiter.resume(throwing: Self.closed) }
        for waiter in leaving.values { waiter.resume(throwing: Self.closed) }
        (creating, leaving, drafts, openRooms) = ([:], [:], [:], [:])
    }
}
