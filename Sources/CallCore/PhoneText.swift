package import SIP

/// A text that has come.
///
/// Source: RFC 3428; RFC 3862; RFC 5438
public struct PhoneText: Hashable, Sendable {
    /// The Call-ID, by which a push names it; several may share one.
    public let callID: String
    /// What its sender calls it, by which a repeat is told, and for which receipts are sent; nil where it has no name.
    public let id: String?
    /// What tells it from others of the same Call-ID that have no name.
    public let distinction: String
    /// The address of who sent it, as far as the servers on the way let only the true one pass; in a room the member who wrote it, as
    /// the room's server says.
    public let sender: String
    /// The address of the chat room that it was written in; nil outside of rooms.
    public let room: String?
    /// The name that the sender shows of itself; it proves nothing.
    public let senderName: String?
    /// The address of the account that it came for; nil when it came for none.
    public let account: String?
    /// What it says.
    public let text: String
    /// What its sender wants to hear of it: `Phone.sendReceipt`.
    public let wantedReceipts: Set<TextReceipt.Kind>
}

/// Where a text of the outbox is; what becomes of it with its receiver, `TextReceipt` tells.
public enum TextState: Hashable, Sendable {
    /// It waits: for a network, for its account, for those before it, or to be tried again.
    case pendingDelivery
    /// It is on its way.
    case inProgress
    /// It was taken (2xx).
    case delivered
    /// It will not be sent any more, and why.
    case notDelivered(PhoneError)
}

/// What became of a text that this side has sent, as who got it tells.
public struct TextReceipt: Hashable, Sendable {
    /// What became of it.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// It was delivered.
        case delivered
        /// A person has seen it.
        case displayed
        /// It was not delivered, or the other side does not tell.
        case failed

        /// As Disposition-Notification asks for it (RFC 5438, section 6.3).
        package var disposition: String {
            switch self {
            case .delivered: "positive-delivery"
            case .displayed: "display"
            case .failed: "negative-delivery"
            }
        }
    }

    /// The identifier that this side gave to the text.
    public let id: String
    /// What became of it.
    public let kind: Kind
    /// Who tells.
    public let from: String
}

extension TextReceipt {
    /// What a notification tells; nil for what servers on the way do with a text.
    package init?(_ notification: DispositionNotification, from sender: String) {
        switch notification.status {
        case .delivered: kind = .delivered
        case .displayed: kind = .displayed
        case .failed, .forbidden, .error: kind = .failed
        case .processed, .stored: return nil
        }
        (id, from) = (notification.messageID, sender)
    }
}

extension PhoneText {
    init(_ message: InstantMessage, _ text: String, account: String?) {
        (callID, id, distinction) = (message.callID, message.messageID, message.distinction)
        (sender, senderName) = (message.sender.bytes.text, message.senderName)
        room = message.room?.bytes.text
        (self.account, self.text) = (account, text)
        var wishes: Set<TextReceipt.Kind> = []
        if message.wantsDelivery { wishes.insert(.delivered) }
        if message.wantsDisplay { wishes.insert(.displayed) }
        wantedReceipts = wishes
    }
}
