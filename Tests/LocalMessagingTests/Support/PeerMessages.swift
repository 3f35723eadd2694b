import LocalMessaging

// What the tests and `Tests/MessagingPeer` say to each other; a file of both.

struct Note: LocalMessage, Hashable {
    static let messageType = MessageType(name: "test.note")
    let text: String
}

/// What a peer says first.
struct Hello: LocalMessage {
    static let messageType = MessageType(name: "test.hello")
    let text: String
}

/// Answered with the process's number.
struct WhoAreYou: LocalRequest {
    static let messageType = MessageType(name: "test.who")
    typealias Reply = Int32
}

/// Waits until its sender does not.
struct NeverAnswered: LocalRequest {
    static let messageType = MessageType(name: "test.never")
    typealias Reply = Int
}
