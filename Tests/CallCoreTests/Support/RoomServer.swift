import CallBasics
import SIPTesting

@testable import SIP

/// A conference server with one room, by datagrams alone: it makes the room, invites, tells members of each other, and sends on what
/// they write.
struct RoomServer: DatagramElement {
    typealias Event = Never

    /// A dialog with somebody, as this side has it.
    private struct Peer {
        let local: String
        let remote: String
        let callID: String
        let address: SocketAddress
    }

    var own = SocketAddress.loopback(port: 0)
    private var subject = ""
    private var members: [String] = []
    private var version = 0
    private var number: UInt32 = 0
    private var subscribers: [Peer] = []
    var outputs: [ElementOutput<Never>] = []

    private var room: String { "sip:tea@\(own.host):\(own.port)" }
    private var focus: String { "<\(room);gr=1>;isfocus;text" }

    mutating func handle(_ input: ElementInput, at now: MediaTime) {
        guard case .datagram(let bytes, _, let remote) = input, let message = try? SIPMessage(datagram: bytes) else {
            return
        }
        do {
            if message.method == nil {
                try receive(response: message, from: remote)
            } else {
                try receive(message, from: remote)
            }
        } catch {
            // Nobody is told; the test waits in vain.
        }
    }

    private mutating func receive(_ request: SIPMessage, from remote: SocketAddress) throws(SIPError) {
        guard request.method != .ack else { return }
        var response = try request.response(status: 200, reason: "OK", tag: Bytes("srv"))
        if request.method == .invite || request.method == .subscribe { try response.append(.contact, Bytes(focus)) }
        if request.method == .subscribe { try response.append(.expires, request.first(.expires) ?? []) }
        send(response, to: remote)
        switch request.method {
        case .invite?:
            guard !request.bodyBytes.isEmpty else { return }
            subject = request.first(.subject)?.text ?? ""
            let invited = try ResourceList(parsing: request.bodyBytes).addresses
            members = [try request.from()?.uri.description ?? ""] + invited.map(\.description)
            for person in invited { try invite(person) }
        case .subscribe?:
            let peer = Peer(
                local: "<\(room)>;tag=srv",
                remote: request.first(.from)?.text ?? "",
                callID: request.callID?.text ?? "",
                address: remote
            )
            let isOver = request.first(.expires)?.text == "0"
            subscribers.removeAll { $0.callID == peer.callID }
            if !isOver { subscribers.append(peer) }
            try notify(peer, "full", members.map { "<user entity=\"\($0)\"/>" }.joined(), isOver: isOver)
        case .refer?:
            guard let target: NameAddress = try request.value(.referTo) else { return }
            let isRemoved = target.uri.parameter("method") == "BYE"
            let address = target.uri.without("method").description
            if isRemoved { members.removeAll { $0 == address } } else { members.append(address) }
            version += 1
            let change = "<user entity=\"\(address)\" state=\"\(isRemoved ? "deleted" : "full")\"/>"
            for peer in subscribers { try notify(peer, "partial", change) }
        case .message?:
            for peer in subscribers where peer.address != remote {
                var message = try self.request(
                    .message,
                    to: peer.address,
                    "<\(room)>;tag=srv",
                    "<sip:\(peer.address)>",
                    "m\(number)"
                )
                try message.set(.contentType, to: request.first(.contentType) ?? [])
                message.setBody(request.body)
                send(message, to: peer.address)
            }
        default: break
        }
    }

    /// Acknowledges an answer to an invitation.
    private mutating func receive(response: SIPMessage, from remote: SocketAddress) throws(SIPError) {
        guard let cSeq = try response.cSeq(), cSeq.method == .invite, response.statusCode == 200 else { return }
        let from = response.first(.from)?.text ?? ""
        var ack = try request(.ack, to: remote, from, response.first(.to)?.text ?? "", response.callID?.text ?? "")
        try ack.set(.cSeq, to: CSeq(cSeq.number, .ack))
        send(ack, to: remote)
    }

    private mutating func invite(_ person: SIPURI) throws(SIPError) {
        guard let address = SocketAddress(host: person.host, port: person.port ?? 5060) else { return }
        var invite = try request(.invite, to: address, "<\(room)>;tag=inv", "<\(person)>", "invite-\(number)")
        try invite.append(.contact, Bytes(focus))
        try invite.append(.subject, Bytes(subject))
        send(invite, to: address)
    }

    private mutating func notify(_ peer: Peer, _ state: String, _ users: String, isOver: Bool = false) throws(SIPError)
    {
        var notify = try request(.notify, to: peer.address, peer.local, peer.remote, peer.callID)
        try notify.append(.contact, Bytes(focus))
        try notify.append(.event, Bytes("conference"))
        try notify.append(.subscriptionState, Bytes(isOver ? "terminated;reason=timeout" : "active;expires=3600"))
        try notify.set(.contentType, to: Bytes(ConferenceDocument.type))
        let document = """
            <conference-info xmlns="urn:ietf:params:xml:ns:conference-info" entity="\(room)" state="\(state)" version="\(version)">
            <conference-description><subject>\(subject)</subject></conference-description><users>\(users)</users></conference-info>
            """
        notify.setBody(Array(document.utf8))
        send(notify, to: peer.address)
    }

    private mutating func request(
        _ method: SIPMethod,
        to: SocketAddress,
        _ local: String,
        _ remote: String,
        _ callID: String
    )
        throws(SIPError) -> SIPMessage
    {
        number += 1
        var request = SIPMessage(method, to: try SIPURI("sip:\(to)"))
        let branch = Bytes("z9hG4bKr\(number)")
        try request.append(.via, Via(transport: Bytes("UDP"), host: Bytes(own.host), port: own.port, branch: branch))
        try request.append(.maxForwards, Bytes("70"))
        try request.append(.from, Bytes(local))
        try request.append(.to, Bytes(remote))
        try request.append(.callID, Bytes(callID))
        try request.append(.cSeq, CSeq(number, method))
        return request
    }

    private mutating func send(_ message: SIPMessage, to remote: SocketAddress) {
        outputs.append(.send(message.bytes, Flow(.udp, local: own, remote: remote)))
    }
}
