import CallBasics

@testable import MediaTransport

/// A server of TURN as a test needs it: it wants a user, and a new nonce as often as the test likes.
struct RelayServer {
    private struct Client {
        let relayed: SocketAddress
        var end: MediaTime
        /// Who may send, and until when; peers by their channels, too.
        var hosts: [SocketAddress: MediaTime] = [:]
        var channels: [UInt16: (peer: SocketAddress, end: MediaTime)] = [:]

        func lets(_ peer: SocketAddress, at now: MediaTime) -> Bool {
            now < end && hosts[peer.with(port: 0)].map { now < $0 } ?? false
        }
    }

    typealias Datagram = (bytes: [UInt8], source: SocketAddress, destination: SocketAddress)

    static let user = "alice"
    static let password = "a password"
    private static let realm = "example.test"

    let address: SocketAddress
    /// How many requests a nonce is good for.
    var nonceLife = Int.max
    /// What it refuses, whoever asks.
    var refused: Set<STUNMessage.Method> = []
    /// What the server has been asked, in order.
    private(set) var asked: [STUNMessage.Method] = []
    private(set) var staleCount = 0
    private var clients: [SocketAddress: Client] = [:]
    /// What each client signs with, and how often it has.
    private var nonces: [SocketAddress: (number: Int, useCount: Int)] = [:]
    private var portCount: UInt16 = 0
    private var now = MediaTime.zero

    init(at address: SocketAddress) { self.address = address }

    var clientCount: Int { clients.count }

    /// Whether it is the server, or one of its relayed addresses, that `destination` is.
    func has(_ destination: SocketAddress) -> Bool { destination.host == address.host }

    /// What leaves when a datagram has come.
    mutating func take(
        _ bytes: [UInt8],
        from source: SocketAddress,
        to destination: SocketAddress,
        at now: MediaTime
    ) -> [Datagram] {
        self.now = now
        guard destination == address else { return passOn(bytes, from: source, to: destination) }
        if let (number, data) = ChannelData.unwrapped(bytes) {
            guard let client = clients[source], let (peer, end) = client.channels[number], now < end,
                client.lets(peer, at: now)
            else { return [] }
            return [(data, client.relayed, peer)]
        }
        guard let message = STUNMessage(parsing: bytes) else { return [] }
        if message.kind == .indication {
            guard let client = clients[source], let peer = message.address(.xorPeerAddress),
                let data = message[.data], client.lets(peer, at: now)
            else { return [] }
            return [(Array(data), client.relayed, peer)]
        }
        return [(answer(message, from: source), address, source)]
    }

    private func passOn(_ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress) -> [Datagram] {
        guard let (owner, client) = clients.first(where: { $0.value.relayed == destination }),
            client.lets(source, at: now)
        else { return [] }
        if let number = client.channels.first(where: { $0.value.peer == source && now < $0.value.end })?.key {
            return [(ChannelData.wrapped(bytes, number), address, owner)]
        }
        var generator = SystemRandomNumberGenerator()
        var writer = STUNWriter(.indication, .data, STUNMessage.Transaction(using: &generator))
        writer.append(.xorPeerAddress, source)
        writer.append(.data, bytes)
        return [(writer.finish(withFingerprint: false), address, owner)]
    }

    private var key: STUNKey { STUNKey(user: Self.user, realm: Self.realm, password: Self.password) }

    private mutating func answer(_ request: STUNMessage, from source: SocketAddress) -> [UInt8] {
        asked.append(request.method)
        if request.method == .binding { return success(request) { $0.append(.xorMappedAddress, source) } }
        guard let nonce = request.text(.nonce), request.isSigned(with: key) else {
            return refusal(request, 401, "Unauthorized", nonces[source]?.number)
        }
        var known = nonces[source] ?? (0, 0)
        known.useCount += 1
        let isStale = nonce != "\(known.number)" || known.useCount > nonceLife
        if isStale { (known, staleCount) = ((known.number + 1, 0), staleCount + 1) }
        nonces[source] = known
        if isStale { return refusal(request, 438, "Stale Nonce", known.number) }
        switch request.method {
        case .allocate:
            portCount += 1
            clients[source] = Client(relayed: address.with(port: 50_000 + portCount), end: now + .seconds(600))
            return success(request) {
                $0.append(.xorRelayedAddress, address.with(port: 50_000 + portCount))
                $0.append(.xorMappedAddress, source)
                $0.append(.lifetime, number: 600 as UInt32)
            }
        case .refresh:
            guard let client = clients[source], now < client.end else {
                return refusal(request, 437, "Allocation Mismatch")
            }
            clients[source]?.end = now + .seconds(600)
            if request.number(.lifetime) == 0 { clients[source] = nil }
            return success(request) { $0.append(.lifetime, number: request.number(.lifetime) ?? 600) }
        case .createPermission where clients[source] == nil, .channelBind where clients[source] == nil:
            return refusal(request, 437, "Allocation Mismatch")
        case _ where refused.contains(request.method):
            return refusal(request, 500, "Server Error")
        case .createPermission:
            for peer in request.peerAddresses { clients[source]?.hosts[peer.with(port: 0)] = now + .seconds(300) }
            return success(request) { _ in }
        case .channelBind:
            guard let number = request.channel, let peer = request.address(.xorPeerAddress),
                0x4000...0x4FFF ~= number, clients[source]?.channels[number].map({ $0.peer == peer }) ?? true,
                clients[source]?.channels.allSatisfy({ $0.value.peer != peer || $0.key == number }) ?? true
            else { break }
            clients[source]?.hosts[peer.with(port: 0)] = now + .seconds(300)
            clients[source]?.channels[number] = (peer, now + .seconds(600))
            return success(request) { _ in }
        case .binding, .send, .data: break
        }
        return refusal(request, 400, "Bad Request")
    }

    private func success(_ request: STUNMessage, _ append: (inout STUNWriter) -> Void) -> [UInt8] {
        var writer = STUNWriter(.success, request.method, request.transaction)
        append(&writer)
        if request.method != .binding { writer.sign(with: key) }
        return writer.finish(withFingerprint: true)
    }

    private func refusal(_ request: STUNMessage, _ code: Int, _ reason: String, _ nonce: Int? = nil) -> [UInt8] {
        var writer = STUNWriter(.failure, request.method, request.transaction)
        writer.append(errorCode: code, reason: reason)
        writer.append(.realm, Self.realm)
        writer.append(.nonce, "\(nonce ?? 0)")
        if code != 401, code != 438 { writer.sign(with: key) }
        return writer.finish(withFingerprint: true)
    }
}
