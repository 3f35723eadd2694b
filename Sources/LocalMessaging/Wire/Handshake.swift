/// What the two sides tell each other before anything else.
enum Handshake {
    /// The most types that a side may list.
    static let maximumTypeCount = 1024

    /// Of a client and, in a welcome, of a server.
    struct Introduction: Codable, Sendable {
        /// Types that this side accepts.
        let accepts: [MessageType]
        /// The largest frame that this side accepts.
        let maximumFrameByteCount: Int
        /// In a welcome: what a client says on its connection for descriptors.
        var token: String?
    }

    /// Why a client is not accepted.
    struct Refusal: Codable, Sendable {
        let reason: String
    }
}
