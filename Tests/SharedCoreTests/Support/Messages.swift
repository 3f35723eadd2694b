@testable import SharedCore

extension IncomingMessage {
    /// A message of a call-id; everything else follows from it.
    static func sample(_ callID: String, messageID: String? = nil, text: String? = nil) -> IncomingMessage {
        IncomingMessage(
            callID: callID,
            messageID: messageID,
            room: nil,
            sender: "sip:sender@example.org",
            text: text ?? "text of \(callID)"
        )
    }
}

extension ProcessIdentity {
    /// A process that is alive as long as this one, and is not this one.
    static var parent: ProcessIdentity { ProcessIdentity(pid: 1) ?? .current }

    /// A process that has died: this one has its number now.
    static var dead: ProcessIdentity { ProcessIdentity(pid: current.pid, startTime: current.startTime - 1) }
}

extension SharedStore {
    /// Acknowledges the message of a call-id as one that `process` has claimed.
    func acknowledge(callID: String, by process: ProcessIdentity) async throws -> Bool {
        guard let stored = try await message(callID: callID) else { return false }
        return try await acknowledge(
            ClaimedMessage(
                message: stored.message,
                receivedAt: stored.receivedAt,
                isRepeated: false,
                key: stored.message.key,
                claimant: process
            )
        )
    }
}
