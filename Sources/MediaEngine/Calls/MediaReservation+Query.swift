package import CallBasics

extension MediaReservation {
    /// Asks over RTP's port, or RTCP's own, off the pool, until the question is over; at once when there is none, or a call has it.
    package func ask<Query: PortQuery>(_ query: Query, isOfControl: Bool) async -> Query {
        guard let socket = withSockets({ media, control in isOfControl ? control : media }) else { return query }
        return (try? await BlockingWork.run { socket.ask(query) }) ?? query
    }

    /// Sends from RTP's port, and from RTCP's own; answers false once a call has them, or they are released.
    package func send(
        _ datagrams: [(bytes: [UInt8], destination: SocketAddress)],
        _ control: [(bytes: [UInt8], destination: SocketAddress)]
    ) -> Bool {
        withSockets { mediaSocket, controlSocket in
            for (socket, datagrams) in [(mediaSocket, datagrams), (controlSocket, control)] {
                for (bytes, destination) in datagrams {
                    socket?.send(bytes.span, to: destination, at: MonotonicClock.current)
                }
            }
            return mediaSocket != nil
        }
    }
}
