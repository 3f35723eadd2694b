package import SharedCore

/// Something that happened in a mailbox.
package enum MailboxEvent: Sendable, Hashable {
    /// A client connected.
    case connected
    /// Something was sent, for the first time or again.
    case sent(MailboxContent)
    /// Something was acknowledged and is gone.
    case acknowledged(MailboxContent)
    /// An action was performed for the first time.
    case performed(MessageAction)
    /// A connection ended; whether the script wanted it.
    case disconnected(byScript: Bool)
}

/// What a mailbox holds and has seen.
package struct MailboxCounts: Sendable, Hashable {
    /// Posts that are not acknowledged, those that fall due later included.
    package var held = 0
    /// Posts that were acknowledged.
    package var acknowledged = 0
    /// How many times a post was sent, repeats included.
    package var sent = 0
    /// Actions that were performed.
    package var actions = 0
    /// Connections that were made.
    package var connections = 0
    /// Connections that are there now.
    package var openConnections = 0

    /// Counts of nothing.
    package init() {}
}
