internal import CallBasics
internal import SIP
internal import SIPTransport

/// Why a registrar or a peer of a test cannot do what it is asked for.
public typealias TestingError = Failure<TestingFault>

/// What is wrong at a registrar or a peer of a test.
public enum TestingFault: Hashable, Sendable {
    /// No socket could be opened.
    case network
    /// An address cannot be read.
    case invalid
    /// The registrar refused with this status, or did not answer: nil.
    case notRegistered(Int?)
    /// It was closed.
    case closed
}

extension TestingError {
    /// An address out of what a test says.
    static func uri(_ text: String) throws(TestingError) -> SIPURI {
        do { return try SIPURI(text) } catch { throw TestingError(.invalid, "\(text) is no SIP URI: \(error)") }
    }
}

extension SIPEndpoint {
    /// Opens UDP and TCP at one port of 127.0.0.1.
    func openOnLoopback() async throws(TestingError) -> SocketAddress {
        do { return try await open(at: .loopback(port: 0), [.udp, .tcp]) } catch {
            throw TestingError(.network, "No port of 127.0.0.1 can be opened: \(error)")
        }
    }
}
