/// What came of a push for a message.
public enum MessageOutcome: Sendable {
    /// The message, to be shown by this process and then acknowledged.
    case message(ClaimedMessage, MessageSource)
    /// Another process shows it, or has shown it.
    case shownElsewhere
    /// It did not come in time; a general text is shown, and the message is kept for who asks next.
    case late
}

/// What came of a push for a chat room.
public enum RoomOutcome: Sendable {
    /// The room.
    case room(StoredRoom, MessageSource)
    /// It did not come in time.
    case late
}

/// What a core received, or has learned.
public enum CoreArrival: Hashable, Sendable {
    /// A message.
    case message(IncomingMessage)
    /// An invitation to a chat room.
    case invitation(RoomInvitation)
    /// An action, such as a reply, was refused for good.
    case refused(RefusedAction)
}

/// From where a process has what it was woken for.
public enum MessageSource: String, Codable, Hashable, Sendable {
    /// Its own core fetched it.
    case executor
    /// The main that runs handed it over.
    case main
    /// It was in the store: a core of another process, no main, had fetched it, or it had come late.
    case store
    /// It did not come in time.
    case fallback
}
