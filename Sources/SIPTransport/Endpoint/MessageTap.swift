package import CallBasics
package import SIP

/// A message that a stack sent or received, without its secrets unless they were asked for.
package struct TappedMessage: Sendable {
    package let bytes: [UInt8]
    package let flow: Flow
    package let isSent: Bool
    package let time: MediaTime

    package init(_ bytes: [UInt8], _ flow: Flow, isSent: Bool, at time: MediaTime) {
        (self.bytes, self.flow, self.isSent, self.time) = (bytes, flow, isSent, time)
    }
}

/// Tells of each message that a stack sends and receives; keep-alives are none.
///
/// What comes by connections is cut into messages as the stack cuts it.
struct MessageTap {
    /// Takes a message, on the event loop.
    typealias Listener = @Sendable (TappedMessage) -> Void

    private let listener: Listener
    private let showsSecrets: Bool
    private var framers: [Flow: StreamFramer] = [:]

    init(showsSecrets: Bool, _ listener: @escaping Listener) {
        (self.showsSecrets, self.listener) = (showsSecrets, listener)
    }

    mutating func noteSent(_ bytes: [UInt8], on flow: Flow, at now: MediaTime) {
        guard !Self.isKeepAlive(bytes) else { return }
        tell(bytes, flow, isSent: true, now)
    }

    mutating func noteReceived(_ input: ElementInput, at now: MediaTime) {
        switch input {
        case .datagram(let bytes, let local, let remote):
            guard !Self.isKeepAlive(bytes) else { return }
            tell(bytes, Flow(.udp, local: local, remote: remote), isSent: false, now)
        case .bytes(let bytes, let flow):
            var framer = framers.removeValue(forKey: flow) ?? StreamFramer()
            framer.append(bytes)
            while let element = framer.next() {
                switch element {
                case .message(let message), .failure(_, let message?): tell(message.bytes, flow, isSent: false, now)
                case .ping, .pong, .failure(_, nil): break
                }
            }
            framers[flow] = framer
        case .failed(let flow): forget(flow)
        case .opened, .answer, .timeout: break
        }
    }

    /// A connection has ended.
    mutating func forget(_ flow: Flow) { framers[flow] = nil }

    /// Line ends, and the zeros that some send by UDP.
    private static func isKeepAlive(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { [0x0D, 0x0A, 0].contains($0) } }

    private func tell(_ bytes: [UInt8], _ flow: Flow, isSent: Bool, _ now: MediaTime) {
        let shown = showsSecrets ? bytes : Redaction.redacted(bytes)
        listener(TappedMessage(shown, flow, isSent: isSent, at: now))
    }
}
