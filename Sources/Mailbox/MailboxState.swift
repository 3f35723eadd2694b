import NIOCore
import SharedCore

/// What a mailbox holds, what each of its connections is to be sent, and the script of it.
///
/// It owns no socket and no clock: `now` is the time since the mailbox opened. What is to be sent waits as a key and is
/// taken by `nextOutput` when the connection has room, so that a client that does not read costs nothing.
struct MailboxState {
    /// What a connection does next.
    enum Output: Hashable {
        case send(MailboxResponse)
        case close
    }

    private struct Entry {
        let post: MailboxPost
        let due: Duration
        let number: Int
        var wasSent = false
    }

    private enum Waiting {
        case post(String)
        case response(MailboxResponse)
        case close
    }

    private struct Connection {
        var isListening = false
        var waiting: CircularBuffer<Waiting> = []
        /// What was sent over it or waits: it is not sent twice, but by script.
        var taken: Set<String> = []

        /// Lets it end once the repeats of `key` that come next are sent.
        mutating func end(after key: String) {
            let repeatCount = waiting.prefix { if case .post(key) = $0 { true } else { false } }.count
            waiting = CircularBuffer(waiting.prefix(repeatCount) + [.close])
        }
    }

    private(set) var counts = MailboxCounts()
    private(set) var actions: [MessageAction] = []
    private var performed: Set<String> = []
    private var actionByteCount = 0
    private var entries: [String: Entry] = [:]
    private var nextNumber = 0
    /// The keys of `entries` that are due, in their order.
    private var due: [String] = []
    /// The keys that fall due later, the next one last.
    private var later: [String] = []
    private var connections: [Int: Connection] = [:]

    /// When the next post falls due.
    var nextDue: Duration? { later.last.flatMap { entries[$0]?.due } }

    /// The keys of what is held, in the order of being due.
    var held: [String] { due + later.reversed() }

    /// Takes posts whose delay counts from `now`; a key that is held already keeps what it has.
    mutating func add(_ posts: [MailboxPost], now: Duration) {
        var coming = later
        for post in posts where entries[post.content.key] == nil {
            entries[post.content.key] = Entry(post: post, due: now + post.delay, number: nextNumber)
            nextNumber += 1
            coming.append(post.content.key)
            counts.held += 1
        }
        // What was posted first comes first where two fall due at once.
        later = coming.sorted { order($0) > order($1) }
        advance(to: now)
    }

    /// Lets fall due what is to by `now`; it waits for each connection that listens.
    mutating func advance(to now: Duration) {
        while let key = later.last, order(key).due <= now {
            later.removeLast()
            due.append(key)
            for identifier in connections.keys where connections[identifier]?.isListening == true {
                enqueue(key, on: identifier)
            }
        }
    }

    mutating func connect(_ identifier: Int) {
        connections[identifier] = Connection()
        counts.connections += 1
        counts.openConnections += 1
    }

    mutating func disconnect(_ identifier: Int) {
        guard connections.removeValue(forKey: identifier) != nil else { return }
        counts.openConnections -= 1
    }

    /// Takes what a client asks; answers what is worth telling.
    mutating func handle(_ request: MailboxRequest, from identifier: Int, now: Duration) -> MailboxEvent? {
        advance(to: now)
        switch request {
        case .fetch:
            for key in due { enqueue(key, on: identifier) }
            connections[identifier]?.waiting.append(.response(.pending(later.count)))
        case .listen(let listens):
            connections[identifier]?.isListening = listens
        case .acknowledge(let key):
            // What was never sent stays: nobody can have it.
            guard let entry = entries[key], entry.wasSent, let index = due.firstIndex(of: key) else { return nil }
            due.remove(at: index)
            entries[key] = nil
            for other in connections.keys { connections[other]?.taken.remove(key) }
            counts.held -= 1
            counts.acknowledged += 1
            return .acknowledged(entry.post.content)
        case .action(let action):
            return perform(action, from: identifier)
        }
        return nil
    }

    /// Lets the connection end with an error.
    mutating func refuse(_ identifier: Int, because reason: String) {
        connections[identifier]?.waiting = [.response(.error(reason)), .close]
    }

    /// Takes what the connection does next; nil when there is nothing.
    mutating func nextOutput(of identifier: Int) -> Output? {
        while let next = connections[identifier]?.waiting.popFirst() {
            switch next {
            case .post(let key):
                // Another connection may have acknowledged it meanwhile.
                guard let entry = entries[key] else { continue }
                if !entry.wasSent, entry.post.disconnectsAfter { connections[identifier]?.end(after: key) }
                entries[key]?.wasSent = true
                counts.sent += 1
                return .send(.post(entry.post.content))
            case .response(let response):
                return .send(response)
            case .close:
                return .close
            }
        }
        return nil
    }

    private mutating func enqueue(_ key: String, on identifier: Int) {
        guard let post = entries[key]?.post, connections[identifier]?.taken.insert(key).inserted == true else { return }
        for _ in 0...post.duplicates { connections[identifier]?.waiting.append(.post(key)) }
    }

    private mutating func perform(_ action: MessageAction, from identifier: Int) -> MailboxEvent? {
        if performed.contains(action.id) {
            connections[identifier]?.waiting.append(.response(.performed(action.id)))
            return nil
        }
        let byteCount = MailboxLine.encode(action).count
        guard actionByteCount + byteCount <= Self.mostActionBytes else {
            refuse(identifier, because: "The mailbox has no room for more actions. Start it again.")
            return nil
        }
        actionByteCount += byteCount
        performed.insert(action.id)
        actions.append(action)
        counts.actions += 1
        connections[identifier]?.waiting.append(.response(.performed(action.id)))
        return .performed(action)
    }

    private func order(_ key: String) -> (due: Duration, number: Int) {
        entries[key].map { ($0.due, $0.number) } ?? (.zero, 0)
    }

    private static var mostActionBytes: Int { 64 << 20 }
}
