package import CallBasics

extension FlowTable {
    /// Takes a connection that somebody made to an own address; nil when there are too many: close it.
    package mutating func accept(
        _ transport: Flow.Transport,
        local: SocketAddress,
        remote: SocketAddress,
        at now: MediaTime
    ) -> Flow? {
        guard transport != .udp, hasRoom(for: remote) else {
            droppedCount += 1
            return nil
        }
        let flow = Flow(transport, local: local, remote: remote, number: makeNumber())
        insert(Connection(flow, target: nil, state: .open, timers, at: now))
        return flow
    }

    /// A connection that was asked for is open, with TLS after its handshake.
    package mutating func handleOpened(_ flow: Flow, at now: MediaTime) {
        guard let slot = slots[flow], var connection = take(slot) else { return add(.close(flow)) }
        let waiting = connection.state == .opening ? connection.open(at: now) : []
        put(connection, in: slot)
        for bytes in waiting { add(.send(bytes, flow)) }
    }

    /// A connection was refused, or a datagram could not be delivered.
    package mutating func handleFailed(_ flow: Flow, at now: MediaTime) {
        guard flow.transport != .udp else { return endDatagrams(of: flow) }
        guard let slot = slots[flow], let connection = connections[slot] else { return }
        end(slot, connection.state == .opening ? .refused : .closed, isClosed: true, at: now)
    }

    /// The other side closed a connection, or the network did.
    package mutating func handleClosed(_ flow: Flow, at now: MediaTime) { handleFailed(flow, at: now) }

    /// Closes a connection for the user, who is not told that it died.
    package mutating func close(_ flow: Flow) {
        guard let slot = slots[flow] else { return }
        end(slot, nil, isClosed: flow.transport == .udp)
    }

    /// Takes what came by a connection.
    package mutating func receive(_ bytes: [UInt8], on flow: Flow, at now: MediaTime) {
        guard let slot = slots[flow], var connection = take(slot) else {
            droppedCount += 1
            return
        }
        let reading = connection.read(bytes, at: now)
        for message in reading.messages { add(.message(message, flow)) }
        // However many pings came at once, one line end says that the flow lives.
        if reading.hasPing, !reading.isFaulty { add(.send(KeepAlive.lineEnd, flow)) }
        put(connection, in: slot)
        if reading.isFaulty {
            end(slot, .faulty, isClosed: false)
        } else if isOverloaded, connection.waitingByteCount > 0 {
            end(slot, .overloaded, isClosed: false)
        }
    }

    /// Takes a datagram; what is no message, such as a keep-alive, or comes from where no answer can go to, is dropped.
    package mutating func receive(
        datagram: [UInt8],
        local: SocketAddress,
        remote: SocketAddress,
        at now: MediaTime
    ) {
        guard remote.isDestination, let message = try? SIPMessage(datagram: datagram) else {
            droppedCount += 1
            return
        }
        add(.message(message, Flow(.udp, local: local, remote: remote)))
    }

    /// Keeps a flow alive, such as that of a registration: it is pinged, and does not end while it is answered.
    ///
    /// Once more it takes over what was agreed anew. False when the flow has gone, or too many are kept.
    package mutating func keep(_ flow: Flow, _ agreement: KeepAlive.Agreement, at now: MediaTime) -> Bool {
        if let slot = slots[flow], var connection = connections[slot] {
            guard connection.isUsable else { return false }
            connection.keep(agreement, &generator, at: now)
            put(connection, in: slot)
            return true
        }
        guard flow.transport == .udp, slots.count - acceptedCount - openedCount < limits.keptFlows,
            isLocal(flow.local, of: .udp)
        else { return false }
        var connection = Connection(flow, target: nil, state: .open, timers, at: now)
        connection.keep(agreement, &generator, at: now)
        insert(connection)
        return true
    }

    /// Ends what `keep` began: a connection ends once it has been idle for long.
    package mutating func release(_ flow: Flow, at now: MediaTime) {
        guard let slot = slots[flow], var connection = connections[slot] else { return }
        guard flow.transport != .udp else { return end(slot, nil, isClosed: true) }
        connection.release(at: now)
        put(connection, in: slot)
    }

    private mutating func endDatagrams(of flow: Flow) {
        guard let slot = slots[flow] else { return add(.died(flow, .unreachable, isProven: false)) }
        end(slot, .unreachable, isClosed: true)
    }
}
