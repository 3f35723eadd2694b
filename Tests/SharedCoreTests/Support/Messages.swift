import SharedCore

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
