package import CallBasics

/// The flow that a request is to leave by, and why that one.
package struct FlowChoice: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// It is the target's transport.
        case target
        /// The request is too long for UDP; when this flow dies before it is open, ask again, and it will be UDP.
        case size
        /// The request is too long for UDP, but nothing else may be used, or it was refused: expect it to get lost.
        case oversized
    }

    package var flow: Flow
    package var reason: Reason
}

extension FlowTable {
    /// The flow to a target: of UDP the socket, else the connection that is there, or one that is opened now.
    ///
    /// Nil when there is no own address of that family, or there are too many connections.
    package mutating func flow(to target: Target, at now: MediaTime) -> Flow? {
        guard let local = localAddress(of: target.transport, to: target.address) else { return nil }
        let remote = target.address.scoped(as: local)
        guard target.transport != .udp else { return Flow(.udp, local: local, remote: remote) }
        if let slot = targets[target], let connection = connections[slot] { return connection.flow }
        guard openedCount < limits.opened else { return nil }
        let flow = Flow(target.transport, local: local, remote: remote, number: makeNumber())
        insert(Connection(flow, target: target, state: .opening, timers, at: now))
        add(.open(flow, tlsName: target.tlsName))
        return flow
    }

    /// The flow for a request to a target: TCP instead of UDP when it is long and `transports` allow it.
    ///
    /// `request` is without the Via that its transaction gives it, and which names the transport of this flow.
    /// Source: RFC 3261, section 18.1.1
    package mutating func flow(
        for request: SIPMessage,
        to target: Target,
        allowing transports: [Flow.Transport],
        at now: MediaTime
    ) -> FlowChoice? {
        guard let flow = flow(to: target, at: now) else { return nil }
        guard flow.transport == .udp, isTooLong(request, on: flow)
        else {
            return FlowChoice(flow: flow, reason: .target)
        }
        guard transports.contains(.tcp), refusals[target].map({ now >= $0 }) ?? true,
            let other = self.flow(to: Target(.tcp, target.address), at: now)
        else { return FlowChoice(flow: flow, reason: .oversized) }
        if let slot = slots[other], connections[slot]?.state == .opening {
            connections[slot]?.datagramTargets.insert(target)
        }
        return FlowChoice(flow: other, reason: .size)
    }

    /// The flow of UDP for a request that was too long for it, once the target has refused the connection that it was to leave by.
    ///
    /// Nil where `flow` is no such connection.
    /// Source: RFC 3261, section 18.1.1
    func datagramFlow(insteadOf flow: Flow?, to target: Target?, at now: MediaTime) -> Flow? {
        guard let target, target.transport == .udp, flow?.transport == .tcp, let end = refusals[target], now < end,
            let local = localAddress(of: .udp, to: target.address)
        else { return nil }
        return Flow(.udp, local: local, remote: target.address.scoped(as: local))
    }

    /// Whether a request, such as one within a dialog, may leave by a flow; else its target has to be looked up again.
    package func isUsable(_ flow: Flow) -> Bool {
        guard flow.transport == .udp else { return slots[flow].flatMap { connections[$0] }?.isUsable ?? false }
        return isLocal(flow.local, of: .udp)
    }

    /// Where a connection begins, as the other side sees that; nil while nobody has told it.
    package func ownEnd(of flow: Flow) -> SocketAddress? { slots[flow].flatMap { connections[$0]?.ownEnd } }

    /// Notes what the other side of a connection that this side opened has told first: its end does not change, and what comes
    /// later may be the word of somebody behind a proxy.
    package mutating func noteOwnEnd(_ end: SocketAddress, of flow: Flow) {
        guard end.port > 0, let slot = slots[flow], connections[slot]?.target != nil, connections[slot]?.ownEnd == nil
        else { return }
        connections[slot]?.ownEnd = end
    }

    /// Sends a message by a flow, or as soon as it is open; false when it cannot leave by it.
    ///
    /// A response whose connection has gone leaves by one to the address that its request came from.
    /// Source: RFC 3261, section 18.2.2
    package mutating func send(_ bytes: [UInt8], on flow: Flow, at now: MediaTime) -> Bool {
        guard flow.transport != .udp else {
            add(.send(bytes, flow))
            return true
        }
        guard let slot = slots[flow], var connection = take(slot) else { return sendBack(bytes, flow, at: now) }
        switch connection.state {
        case .opening:
            let isTaken = connection.enqueue(bytes, limits)
            put(connection, in: slot)
            return isTaken
        case .open:
            connection.noteUse(at: now)
            put(connection, in: slot)
            add(.send(bytes, flow))
        case .ending(let closesWithAnswer):
            put(connection, in: slot)
            add(.send(bytes, flow))
            if closesWithAnswer { end(slot, .faulty, isClosed: false) }
        }
        return true
    }

    /// Notes that a request by a connection was not answered in time: new ones leave by another connection until something comes.
    ///
    /// It closes where nothing does; of UDP it says nothing.
    package mutating func noteUnanswered(on flow: Flow, at now: MediaTime) {
        guard flow.transport != .udp, let slot = slots[flow], var connection = take(slot) else { return }
        connection.suspect(at: now)
        put(connection, in: slot)
    }

    /// Every connection may be dead: requests take new ones.
    mutating func suspectAll(at now: MediaTime) {
        for flow in slots.sorted(by: { $0.value < $1.value }).map(\.key) { noteUnanswered(on: flow, at: now) }
    }

    mutating func noteRefusal(_ datagramTargets: Set<Target>, at now: MediaTime) {
        for target in datagramTargets {
            if refusals.count >= Self.refusalCount, refusals[target] == nil,
                let first = refusals.min(by: { $0.value < $1.value })
            {
                refusals[first.key] = nil
            }
            refusals[target] = now + timers.refusal
        }
    }

    private mutating func sendBack(_ bytes: [UInt8], _ flow: Flow, at now: MediaTime) -> Bool {
        guard bytes.starts(with: "SIP/2.0 ".utf8), let response = try? SIPMessage(datagram: bytes),
            let via = try? response.topVia(),
            let address = SocketAddress(
                host: (via.received ?? via.host).text,
                port: via.port ?? flow.transport.defaultPort
            )
        else { return false }
        let name = flow.transport == .tls ? via.host.text : nil
        guard let other = self.flow(to: Target(flow.transport, address, tlsName: name), at: now) else { return false }
        return send(bytes, on: other, at: now)
    }

    /// Whether a request with the Via that its transaction gives it is too long for a datagram.
    private func isTooLong(_ request: SIPMessage, on flow: Flow) -> Bool {
        guard request.byteCountAtMost + Self.longestVia > limits.datagramByteCount else { return false }
        return request.bytes.count + Self.viaByteCount(on: flow) > limits.datagramByteCount
    }

    /// The most that `viaByteCount` gives.
    private static let longestVia = 160

    /// How long the line is that a transaction adds, with the longest branch that it makes.
    private static func viaByteCount(on flow: Flow) -> Int {
        let branch = Bytes("z9hG4bK") + Array(repeating: 0x30, count: 32)
        let via = Via(
            transport: flow.transport.nameBytes,
            host: flow.local.sentBy,
            port: flow.local.port,
            branch: branch
        )
        return "Via: \r\n".utf8.count + via.bytes.count
    }

    /// How many targets that refused TCP are remembered.
    static let refusalCount = 256
}
