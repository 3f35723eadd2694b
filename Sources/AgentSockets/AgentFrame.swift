/// What travels between a call and an agent in one piece: a message of WebSocket, or one of AudioSocket with its head.
package enum AgentFrame: Sendable, Hashable {
    /// UTF-8.
    case text([UInt8])
    case binary([UInt8])

    /// How many bytes it has.
    package var byteCount: Int {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes.count
        }
    }
}
