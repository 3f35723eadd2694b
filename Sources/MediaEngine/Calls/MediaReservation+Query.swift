package import CallBasics

extension MediaReservation {
    /// Asks over RTP's port, or RTCP's own, off the pool, until the question is over; at once when there is none, or a call has it.
    package func ask<Query: PortQuery>(_ query: Query, isOfControl: Bool) async -> Query {
        guard let socket = withSockets({ media, control in isOfControl ? control : media }) else { return query }
        return (try? await BlockingWork.run { socket.ask(query) }) ?? query
    }

    /// Sends something from each port; answers false once a call has them, or they are released.
    package func send(_ datagram: [UInt8], to destination: SocketAddress) -> Bool {
        withSockets { media, control in
            for socket in [media, control] { socket?.send(datagram.span, to: destination, at: MonotonicClock.current) }
            return media != nil
        }
    }
}
