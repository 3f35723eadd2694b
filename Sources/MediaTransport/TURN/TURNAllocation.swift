package import CallBasics
internal import MediaEngine
internal import RTP

/// An address at a server that passes on what comes to it, and what is sent from it: where no other way leads (TURN).
///
///     peer ──► relayed address ──► server ──► Data indication, ChannelData ──► this side
///     peer ◄── relayed address ◄── server ◄── Send indication, ChannelData ◄── this side
///
/// Only hosts that it has been told of may send there. It is this side's for as long as it is refreshed, and is given back at the end.
/// Datagrams and time come in; what is to be sent, and what peers have sent, come out.
/// Thread: one at a time.
/// Source: RFC 8656.
package struct TURNAllocation: Sendable {
    /// A host that may send, or is to.
    private struct Permission: Sendable {
        var isGranted = false
        var isRefused = false
        /// When it is asked for again.
        var renewal = MediaTime.zero
        /// What waits until it is granted.
        var waiting: [(bytes: [UInt8], peer: SocketAddress)] = []
    }

    /// A number that stands for a peer: four bytes on each packet, in the place of 36.
    private struct Channel: Sendable {
        let number: UInt16
        var isBound = false
        var renewal = MediaTime.zero
    }

    package private(set) var server: SocketAddress
    /// Where peers send to; nil before the server has given it, and once it is gone.
    package private(set) var relayed: SocketAddress?
    /// How the server sees the port of this side; nil where it sees a connection.
    package private(set) var mapped: SocketAddress?
    /// Why it is not there; nil while it is, or may come.
    package private(set) var failure: TURNError?
    /// How long it took to be given.
    package private(set) var delay = Duration.zero
    private let isIPv4: Bool
    private let carrier: (any TURNCarrier)?
    private let begin: MediaTime
    private var exchange: TURNExchange
    private var visited: Set<SocketAddress>
    private var refresh: MediaTime?
    private var permissions: [SocketAddress: Permission] = [:]
    private var channels: [SocketAddress: Channel] = [:]
    private var nextChannel = TURNAllocation.firstChannel
    /// Whom media goes to: others' channels are forgotten when their time is over.
    private var used: SocketAddress?
    /// Until when the server has it, unless it is refreshed.
    private var end: MediaTime?
    private var leaving: [[UInt8]] = []
    private var isClosed = false

    /// One that is asked for from `now` on, of the family of the server's address.
    ///
    /// - Parameters:
    ///   - server: Where the server takes UDP; the address of `carrier` where there is one.
    ///   - carrier: What reaches the server by a connection; it is there for as long as the allocation.
    ///   - user: Who may use it.
    ///   - password: What proves that.
    ///   - generator: Makes what is random in transactions.
    ///   - now: When it is asked for.
    package init(
        at server: SocketAddress,
        by carrier: (any TURNCarrier)? = nil,
        user: String,
        password: String,
        _ generator: some RandomNumberGenerator & Sendable,
        at now: MediaTime
    ) {
        (self.server, self.carrier, begin, visited) = (server, carrier, now, [server])
        isIPv4 = server.isIPv4
        exchange = TURNExchange(user, password, isIPv4: isIPv4, isReliable: carrier != nil, generator)
        exchange.ask(for: .allocate, at: now)
    }

    // MARK: What is known

    /// When `advance` has something to do, unless something comes before; nil when it is over.
    package var next: MediaTime? {
        let renewals = permissions.values.filter(\.isGranted).map(\.renewal)
        return (renewals + [used.flatMap { boundChannel(of: $0)?.renewal }, refresh, exchange.next].compactMap(\.self))
            .min()
    }

    /// Whether it is still asked for, for the first time.
    package var isPending: Bool { relayed == nil && failure == nil && !isClosed }

    /// Whether the server has said anything of it yet.
    private var isAnswered = false

    /// Whether the server has shown that it is there.
    var isHeard: Bool { isAnswered || carrier?.isConnected ?? false }

    /// Whether a connection leads to the server.
    package var isCarried: Bool { carrier != nil }

    /// What its transactions begin with.
    var tag: UInt32 { exchange.tag }

    /// Whether it has been given back, as far as that can be told.
    var isReleased: Bool { isClosed && exchange.isIdle }

    /// The number that stands for `peer`; nil before the server knows it.
    func channel(of peer: SocketAddress) -> UInt16? { boundChannel(of: peer)?.number }

    private func boundChannel(of peer: SocketAddress) -> Channel? {
        channels[peer].flatMap { $0.isBound ? $0 : nil }
    }

    // MARK: Peers

    /// Has the server pass on what `peer` sends, and whoever else is at its address.
    mutating func permit(_ peer: SocketAddress, at now: MediaTime) {
        let host = peer.with(port: 0)
        guard let relayed, Route.leads(from: relayed, to: peer), permissions[host] == nil,
            permissions.count < Self.hostLimit
        else { return }
        permissions[host] = Permission()
        exchange.ask(for: .permit(host), at: now)
    }

    /// Has a number stand for `peer`, to whom media goes from now on, from when the server knows it.
    mutating func bind(_ peer: SocketAddress, at now: MediaTime) {
        permit(peer, at: now)
        used = peer
        guard permissions[peer.with(port: 0)] != nil, channels[peer] == nil, nextChannel <= Self.lastChannel else {
            return
        }
        channels[peer] = Channel(number: nextChannel)
        exchange.ask(for: .bind(peer, channel: nextChannel), at: now)
        nextChannel += 1
    }

    /// Forgets who may send, as when the other side is another one.
    mutating func forgetPeers() {
        exchange.ceasePermits()
        (permissions, used) = ([:], nil)
    }

    /// Sends to `peer` from the relayed address.
    ///
    /// What is sent before the server lets it through waits for that; of more than a few, the later ones are lost.
    mutating func send(_ bytes: [UInt8], to peer: SocketAddress, at now: MediaTime) {
        permit(peer, at: now)
        let host = peer.with(port: 0)
        guard relayed != nil, let permission = permissions[host], !permission.isRefused else { return }
        if let number = channel(of: peer) { return leaving.append(ChannelData.wrapped(bytes, number)) }
        if permission.isGranted { return indicate(bytes, to: peer) }
        if permission.waiting.count < Self.waitingLimit { permissions[host]?.waiting.append((bytes, peer)) }
    }

    private mutating func indicate(_ bytes: [UInt8], to peer: SocketAddress) {
        var writer = STUNWriter(.indication, .send, exchange.transaction())
        writer.append(.xorPeerAddress, peer)
        writer.append(.data, bytes)
        leaving.append(writer.finish(withFingerprint: false))
    }

    // MARK: What comes in

    /// Takes what the server has sent.
    ///
    /// - Returns: What a peer has sent by way of it; nil for what is between the server and this side alone.
    package mutating func take(
        _ datagram: [UInt8],
        at now: MediaTime
    ) -> (bytes: [UInt8], peer: SocketAddress)? {
        if datagram.isEmpty {
            noteEnd()
            return nil
        }
        if let (number, bytes) = ChannelData.unwrapped(datagram) {
            guard let peer = channels.first(where: { $0.value.number == number })?.key else { return nil }
            return (bytes, peer)
        }
        guard let message = STUNMessage(parsing: datagram) else { return nil }
        if message.kind == .indication {
            guard message.method == .data, relayed != nil, message.notUnderstood.isEmpty,
                let peer = message.address(.xorPeerAddress), let bytes = message[.data]
            else { return nil }
            return (Array(bytes), peer)
        }
        if message.method == .allocate { isAnswered = true }
        switch exchange.take(message, at: now) {
        case nil: break
        case .success(let purpose, let answer): note(purpose, answer, at: now)
        case .failure(let purpose, let error, let answer): fail(purpose, error, answer, at: now)
        }
        return nil
    }

    /// What an empty datagram tells anybody could send, and it may be lost: the connection itself says whether it has ended.
    private mutating func noteEnd() {
        if failure == nil, let reason = carrier?.failure { fail(.disconnected(reason)) }
    }

    private mutating func note(_ purpose: TURNExchange.Purpose, _ answer: STUNMessage, at now: MediaTime) {
        switch purpose {
        case .allocate:
            guard let relayed = answer.address(.xorRelayedAddress), relayed.isIPv4 == isIPv4, relayed.isDestination
            else { return fail(.malformed) }
            (self.relayed, delay) = (relayed, now - begin)
            if carrier == nil { mapped = answer.address(.xorMappedAddress) }
            renew(after: answer, at: now)
        case .refresh: if !isClosed { renew(after: answer, at: now) }
        case .permit(let host): grant(host, at: now)
        case .bind(let peer, _):
            channels[peer]?.isBound = true
            channels[peer]?.renewal = now + Self.channelLife
            grant(peer.with(port: 0), at: now)
        }
    }

    private mutating func renew(after answer: STUNMessage, at now: MediaTime) {
        let lifetime = Duration.seconds(Int(min(answer.number(.lifetime) ?? Self.lifetime, Self.lifetime)))
        (refresh, end) = (now + max(lifetime - Self.margin, lifetime / 2, Self.leastPause), now + lifetime)
    }

    private mutating func grant(_ host: SocketAddress, at now: MediaTime) {
        guard let waiting = permissions[host]?.waiting else { return }
        permissions[host] = Permission(isGranted: true, renewal: now + Self.permissionLife)
        for (bytes, peer) in waiting { indicate(bytes, to: peer) }
    }

    private mutating func fail(
        _ purpose: TURNExchange.Purpose,
        _ error: TURNError,
        _ answer: STUNMessage?,
        at now: MediaTime
    ) {
        switch purpose {
        case .allocate: if !goOn(to: answer, at: now) { fail(error) }
        case .refresh: if !isClosed { fail(error) }
        // What the server has given already it has for a while yet, in which it is asked again.
        case .permit(let host):
            guard let permission = permissions[host] else { break }
            if permission.isGranted {
                permissions[host]?.renewal = now + Self.retryPause
            } else {
                permissions[host] = Permission(isRefused: true)
            }
        case .bind(let peer, _):
            if boundChannel(of: peer) != nil {
                channels[peer]?.renewal = now + Self.retryPause
            } else if peer == used {
                // No sound gets through: the way is none, which ICE finds out.
                failure = error
                close(at: now)
            } else {
                channels[peer] = nil
            }
        }
    }

    /// Asks the server that another one names, up to three, and none of them twice.
    private mutating func goOn(to answer: STUNMessage?, at now: MediaTime) -> Bool {
        guard carrier == nil, let answer, answer.error?.code == 300, let other = answer.address(.alternateServer),
            other.isIPv4 == isIPv4, other.isDestination, visited.count <= Self.hopLimit,
            visited.insert(other).inserted
        else { return false }
        server = other
        exchange.ask(for: .allocate, at: now)
        return true
    }

    private mutating func fail(_ error: TURNError) {
        (relayed, failure, refresh, used, permissions, channels) = (nil, error, nil, nil, [:], [:])
        exchange.cease()
        carrier?.close()
    }

    // MARK: What goes out

    /// Does what its time has come for.
    package mutating func advance(to now: MediaTime) {
        noteEnd()
        for case .failure(let purpose, let error, let answer) in exchange.advance(to: now) {
            fail(purpose, error, answer, at: now)
        }
        if let refresh, now >= refresh {
            self.refresh = nil
            exchange.ask(for: .refresh(seconds: Self.lifetime), at: now)
        }
        for (host, permission) in permissions where permission.isGranted && now >= permission.renewal {
            permissions[host]?.renewal = now + Self.permissionLife
            exchange.ask(for: .permit(host), at: now)
        }
        for (peer, channel) in channels where channel.isBound && now >= channel.renewal {
            if peer == used {
                channels[peer]?.renewal = now + Self.channelLife
                exchange.ask(for: .bind(peer, channel: channel.number), at: now)
            } else if now >= channel.renewal + Self.margin {
                channels[peer] = nil
            }
        }
    }

    /// Takes it for gone when nobody has refreshed it in time, as while a call rang.
    mutating func lapse(at now: MediaTime) {
        if let end, now >= end { fail(.silent) }
    }

    /// Gives it back to the server, behind all that is to be sent by it; what is still asked for, too.
    package mutating func close(at now: MediaTime) {
        guard !isClosed else { return }
        let mayBeThere = relayed != nil || isPending && exchange.isSigned
        isClosed = true
        exchange.cease()
        if mayBeThere {
            leaving = exchange.takeDatagrams() + leaving
            exchange.ask(for: .refresh(seconds: 0), at: now)
            leaving += exchange.takeDatagrams()
        }
        (relayed, refresh, used, permissions, channels) = (nil, nil, nil, [:], [:])
        carrier?.close()
    }

    /// What is to be sent, in order, since it was asked last.
    package mutating func takeDatagrams() -> [(bytes: [UInt8], destination: SocketAddress)] {
        defer { leaving = [] }
        return (exchange.takeDatagrams() + leaving).map { ($0, server) }
    }

    /// Seconds that it is asked for (RFC 8656, section 3.2), and how long before their end it is asked for again.
    private static let lifetime: UInt32 = 600
    private static let margin = Duration.seconds(60)
    private static let leastPause = Duration.seconds(1)
    /// Less than the 300 s of a permission, and the 600 s of a channel (sections 9 and 12).
    private static let permissionLife = Duration.seconds(240)
    private static let channelLife = Duration.seconds(540)
    /// How soon something that the server has is asked for again after a refusal.
    private static let retryPause = Duration.seconds(5)
    private static let firstChannel: UInt16 = 0x4000
    private static let lastChannel: UInt16 = 0x4FFF
    private static let hostLimit = 32
    private static let waitingLimit = 4
    private static let hopLimit = 3
}
