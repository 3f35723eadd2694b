internal import CallBasics
internal import Glibc

/// Asks the kernel for the way to a server; nothing is sent to anybody else.
///
/// The answer is what a socket would get that is connected there, and the interface, which such a socket does not tell.
/// An interface without a cable is no way, though the kernel names it until somebody takes its address away.
///
/// Thread: one at a time. A question may wait for others who change the network just then, for milliseconds as a rule.
final class RouteQuery: Sendable {
    /// There was no answer: the machine lacks memory.
    struct NoAnswer: Error {}

    private let socket: RouteSocket

    init() throws(NetworkWatchError) { socket = try RouteSocket() }

    /// The way to `remote`; nil when there is none.
    func path(towards remote: SocketAddress, _ buffer: inout [UInt8]) throws(NoAnswer) -> NetworkPath? {
        guard case .route(let route) = try answer(to: RouteQuestion.way(to: remote), &buffer), route.isUsable,
            let source = route.source, let interface = route.interface,
            case .link(let link) = try answer(to: RouteQuestion.link(interface), &buffer), link.isUp, link.isRunning
        else { return nil }
        return NetworkPath(source, by: interface)
    }

    private func answer(to question: [UInt8], _ buffer: inout [UInt8]) throws(NoAnswer) -> RouteMessage {
        // What was not awaited once is no answer to this.
        while case .messages = socket.receive(&buffer) {}
        guard socket.ask(question) else { throw NoAnswer() }
        while case .messages(let messages) = socket.receive(&buffer) {
            guard let message = messages.first else { continue }
            switch message {
            case .overrun, .refusal(ENOMEM), .refusal(ENOBUFS): throw NoAnswer()
            default: return message
            }
        }
        throw NoAnswer()
    }
}
