package import CallBasics

/// Chat rooms at conference servers: what this side wants of them.
///
/// Source: RFC 4579; RFC 5366
extension UserAgent {
    /// Has a conference server make a room; `room` tells what comes of it.
    ///
    /// Throws: `badRequest` or `invalidCharacter` when it cannot be asked for
    package mutating func createRoom(
        at factory: SIPURI,
        subject: String,
        members: [SIPURI],
        account: AccountHandle? = nil,
        at now: MediaTime
    ) throws(SIPError) -> RoomHandle {
        guard !members.isEmpty, members.count <= ResourceList.limit else {
            throw SIPError(.badRequest, "A room is made with 1 to \(ResourceList.limit) members. Name them.")
        }
        try checkRoomCount()
        var request = try makeRoomInvite(to: factory, account: account)
        if !subject.isEmpty { try request.append(.subject, Bytes(subject)) }
        try request.append(.require, Bytes("recipient-list-invite"))
        try request.append(.contentDisposition, Bytes("recipient-list"))
        try request.set(.contentType, to: Bytes(ResourceList.type))
        request.setBody(ResourceList(members).body)
        let handle = rooms.insert { _ in Room(account: account, stage: .creationPending) }
        tell(.room(handle, .stage(.creationPending)))
        join(handle, by: request, at: now)
        settle(at: now)
        return handle
    }

    /// Takes up a room that this side is a member of, as of a former process: its server tells what it is like.
    ///
    /// Throws: `badRequest` when it is known already, or there are too many
    package mutating func openRoom(_ address: SIPURI, account: AccountHandle? = nil, at now: MediaTime)
        throws(SIPError) -> RoomHandle
    {
        let address = address.roomAddress
        guard roomOfKey[Room.key(address)] == nil else {
            throw SIPError(.badRequest, "\(address) is open already. Use it as it is.")
        }
        try checkRoomCount()
        let handle = rooms.insert { _ in Room(account: account, address: address, stage: .created) }
        roomOfKey[Room.key(address)] = handle
        follow(handle, at: now)
        settle(at: now)
        return handle
    }

    /// Accepts an invitation: from then on its server tells what the room is like.
    package mutating func acceptRoom(_ handle: RoomHandle, at now: MediaTime) {
        guard let room = rooms[handle], room.stage == .invited, let call = room.call else { return }
        guard acceptInvite(of: call, at: now) else { return settle(at: now) }
        begin(handle, at: now)
        settle(at: now)
    }

    /// Refuses an invitation.
    package mutating func refuseRoom(_ handle: RoomHandle, status: Int, at now: MediaTime) {
        guard let room = rooms[handle], room.stage == .invited, let call = room.call else { return }
        reject(call, status: status, at: now)
    }

    /// Has the server invite somebody to a room, or remove them; `response` and `failed` tell what it comes to.
    ///
    /// Throws: `badRequest` when there is no such room
    package mutating func refer(_ member: SIPURI, to handle: RoomHandle, isRemoved: Bool = false, at now: MediaTime)
        throws(SIPError) -> ErrandID
    {
        guard let room = rooms[handle], let address = room.address else { throw Self.noRoom }
        var request = try makeRequest(.refer, to: address, account: room.account)
        let text = member.without("method").bytes
        var target = NameAddress(try SIPURI(parsing: isRemoved ? text + Bytes(";method=BYE") : text))
        target.parameters.set("text", to: nil)
        try request.append(.referTo, target)
        // What becomes of it the room tells.
        try request.append(.referSub, Bytes("false"))
        try request.append(.supported, Bytes("norefersub"))
        let id = begin(request, .user, account: room.account, at: now)
        settle(at: now)
        return id
    }

    /// Leaves a room: by BYE, behind an INVITE where its call is lost; one that is not made yet is taken back.
    package mutating func leaveRoom(_ handle: RoomHandle, at now: MediaTime) {
        guard var room = rooms[handle] else { return }
        switch room.stage {
        case .invited: refuseRoom(handle, status: 603, at: now)
        case .creationPending:
            if let call = room.call { takeBack(call, CallEnd(.us, .cancelled), reason: nil, at: now) }
        case .created, .terminationFailed:
            (room.stage, room.hasSaidFarewell) = (.terminationPending, room.call != nil)
            rooms[handle] = room
            tell(.room(handle, .stage(.terminationPending)))
            if let call = room.call {
                leave(call, CallEnd(.us, .hungUp), at: now)
            } else {
                joinToLeave(handle, at: now)
            }
        case .terminationPending, .creationFailed, .terminated, .forgotten: break
        }
        settle(at: now)
    }

    /// Forgets a room without a word to its server: this side stays a member.
    package mutating func forgetRoom(_ handle: RoomHandle, at now: MediaTime) {
        forget(handle, at: now)
        settle(at: now)
    }

    mutating func forget(_ handle: RoomHandle, at now: MediaTime) {
        guard let room = rooms[handle] else { return }
        if room.stage == .invited { return refuseRoom(handle, status: 480, at: now) }
        // An INVITE on its way is not left alone.
        if let call = room.call, calls[call]?.stage == .calling {
            takeBack(call, CallEnd(.us, .cancelled), reason: nil, at: now)
        }
        drop(handle, .forgotten, at: now)
    }

    /// The rooms of an account.
    package func rooms(of account: AccountHandle?) -> [RoomHandle] {
        rooms.names.filter { rooms[$0]?.account == account }
    }

    /// The room of an address, also of that of its server's device; nil when there is none.
    package func room(at address: SIPURI) -> RoomHandle? { roomOfKey[Room.key(address)] }

    /// The address of a room; nil before it is made, and when it is gone.
    package func address(of handle: RoomHandle) -> SIPURI? { rooms[handle]?.address }

    /// The account that a room belongs to; nil for none.
    package func account(of handle: RoomHandle) -> AccountHandle? { rooms[handle]?.account }

    // MARK: Steps

    private func checkRoomCount() throws(SIPError) {
        guard rooms.count < configuration.roomCount else {
            throw SIPError(.badRequest, "There are \(rooms.count) rooms, and no more are taken. Leave one.")
        }
    }

    /// An INVITE without a session; it asks for no session timer.
    private mutating func makeRoomInvite(to uri: SIPURI, account: AccountHandle?) throws(SIPError) -> SIPMessage {
        var request = try makeRequest(.invite, to: uri, account: account)
        try configuration.capabilities.describe(in: &request)
        request.remove(.supported)
        return request
    }

    /// Begins the call that joins a room.
    private mutating func join(_ handle: RoomHandle, by request: SIPMessage, at now: MediaTime) {
        guard var room = rooms[handle] else { return }
        var call = Call(request, isCaller: true, account: room.account, .calling, SessionTimer.Wishes())
        _ = call.exchange.send(.invite, hasDescription: false)
        (call.room, call.ringEnd) = (handle, now + configuration.callPatience)
        let name = calls.insert { _ in call }
        room.call = name
        rooms[handle] = room
        call.errand = begin(request, .invite(name), account: room.account, at: now)
        // The URI may lead nowhere at once; then the call has ended already.
        if calls[name] != nil { put(call, name) }
    }

    /// Joins a room whose call is lost, for nobody leaves by other means than BYE.
    mutating func joinToLeave(_ handle: RoomHandle, at now: MediaTime) {
        guard let room = rooms[handle], let address = room.address else { return }
        do {
            join(handle, by: try makeRoomInvite(to: address, account: room.account), at: now)
        } catch {
            failToLeave(handle, status: nil)
        }
    }

    /// It is made: from now on its state is told.
    mutating func begin(_ handle: RoomHandle, at now: MediaTime) {
        rooms[handle]?.stage = .created
        tell(.room(handle, .stage(.created)))
        follow(handle, at: now)
    }

    mutating func failToLeave(_ handle: RoomHandle, status: Int?) {
        guard var room = rooms[handle] else { return }
        room.stage = .terminationFailed(status: status)
        rooms[handle] = room
        tell(.room(handle, .stage(room.stage)))
    }

    /// Takes a room out of every table, and tells it.
    mutating func drop(_ handle: RoomHandle, _ end: RoomStage, at now: MediaTime) {
        guard let room = rooms.remove(handle) else { return }
        if let address = room.address, roomOfKey[Room.key(address)] == handle { roomOfKey[Room.key(address)] = nil }
        if let call = room.call { finish(call, CallEnd(.us, .hungUp), at: now) }
        tell(.room(handle, .stage(end)))
        if let subscription = room.subscription { leave(subscription, at: now) }
    }

    private static var noRoom: SIPError { SIPError(.badRequest, "There is no such room. Make it, or open it first.") }
}
