internal import CCAres
package import CallBasics
internal import Glibc
package import SIP

/// Asks name servers, by c-ares on a thread of its own.
///
/// Thread: any; answers come on the client's thread. It ends with its last reference, and what is open then has failed.
package final class DNSClient: Sendable {
    private let worker: DNSWorker

    /// A client of the machine's name servers, or of `servers`, tried in turn.
    ///
    /// - Parameters:
    ///   - servers: Whom to ask; none for those of the machine.
    ///   - timeout: How long to wait for an answer at first; for each further try twice as long.
    ///   - tries: How often each server is asked.
    /// - Throws: `unavailable` when c-ares, a thread or a descriptor is not to be had.
    package init(servers: [SocketAddress] = [], timeout: Duration = .seconds(2), tries: Int = 2) throws(DNSClientError)
    {
        worker = try DNSWorker(servers: servers, timeout: timeout, tries: tries)
        try worker.start()
    }

    deinit {
        worker.stop()
    }

    /// Asks; the answer comes once, `failure` when the client ends before.
    package func ask(_ question: DNSQuestion) async -> DNSAnswer {
        await withCheckedContinuation { continuation in
            ask(question) { continuation.resume(returning: $0) }
        }
    }

    func ask(_ question: DNSQuestion, _ answer: @escaping @Sendable (DNSAnswer) -> Void) {
        worker.ask(question, answer)
    }
}

/// Why names cannot be asked for.
package typealias DNSClientError = Failure<DNSClientFault>

/// What a client of name servers lacks.
package enum DNSClientFault: Hashable, Sendable {
    case unavailable
}
