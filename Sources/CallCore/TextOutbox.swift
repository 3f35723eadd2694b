package import CallBasics

/// Texts that wait to be sent: in order for each receiver, and tried again until they are taken, refused or three days old.
///
///     put ──► pendingDelivery ──► inProgress ──► 2xx ──► delivered
///                   ▲                 ├─► 3xx to 6xx ──► notDelivered
///                   └── 408, 503, none┘
///
/// One is sent once its account is registered, there is a network, and the one before it to the same receiver has its answer for
/// good. After an answer that may change it waits, twice as long each time, and no longer once its account is registered again.
/// It owns no clock; after each call, `poll` until it is nil.
struct TextOutbox: Sendable {
    /// What is sent, the same each time.
    struct Item: Hashable, Sendable {
        let id: String
        let receiver: String
        /// The address of the account that sends it; nil for none.
        let account: String?
        let type: String
        let body: [UInt8]
    }

    enum Output: Hashable, Sendable {
        case send(Item)
        case told(id: String, TextState)
    }

    /// What came of a try.
    enum Outcome: Sendable {
        case delivered
        /// It will be the same the next time.
        case refused(PhoneError)
        /// It may be another the next time; not before so long, as the server says.
        case unanswered(after: Duration? = nil)
    }

    private struct Entry {
        let item: Item
        let end: MediaTime
        /// Not before; nil while it is being sent.
        var next: MediaTime?
        var failureCount = 0
    }

    /// How long one waits for its delivery.
    static let patience = Duration.seconds(3 * 24 * 3600)
    /// The first wait, which doubles each time, and the longest.
    static let (wait, longestWait) = (Duration.seconds(15), Duration.seconds(900))
    /// The longest wait that a server may ask for.
    static let longestAskedWait = Duration.seconds(3600)
    /// Those that may wait.
    static let limit = 1024

    /// By receiver, in order; only the first of each is sent.
    private var lanes: [String: [Entry]] = [:]
    private var registered: Set<String> = []
    private var isNetworkReachable = true
    private var outputs: [Output] = []
    private(set) var count = 0

    var deadline: MediaTime? { lanes.values.compactMap { $0.first.flatMap(deadline) }.min() }

    mutating func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    func contains(_ id: String) -> Bool { lanes.values.contains { $0.contains { $0.item.id == id } } }

    /// Puts a text behind those for the same receiver; false when too many wait.
    mutating func put(_ item: Item, at now: MediaTime) -> Bool {
        guard count < Self.limit else { return false }
        count += 1
        lanes[item.receiver, default: []].append(Entry(item: item, end: now + Self.patience, next: now))
        outputs.append(.told(id: item.id, .pendingDelivery))
        handleTimeout(at: now)
        return true
    }

    /// Takes a text out that is not being sent; false when there is none.
    mutating func remove(_ id: String, at now: MediaTime) -> Bool {
        for (receiver, lane) in lanes {
            guard let place = lane.firstIndex(where: { $0.item.id == id }) else { continue }
            guard lane[place].next != nil else { return false }
            take(place, of: receiver)
            handleTimeout(at: now)
            return true
        }
        return false
    }

    /// Whether an account is registered; those that wait for it to be again wait no longer.
    mutating func setRegistered(_ account: String, _ isRegistered: Bool, at now: MediaTime) {
        guard isRegistered != registered.contains(account) else { return }
        guard isRegistered else {
            registered.remove(account)
            return
        }
        registered.insert(account)
        hurry(at: now) { $0.account == account }
    }

    mutating func setNetworkReachable(_ isReachable: Bool, at now: MediaTime) {
        guard isReachable != isNetworkReachable else { return }
        isNetworkReachable = isReachable
        // The others wait until their accounts are registered again.
        if isReachable { hurry(at: now) { $0.account == nil } }
    }

    /// What came of a text that was sent.
    mutating func note(_ outcome: Outcome, of id: String, at now: MediaTime) {
        let place = lanes.first { $0.value.first?.item.id == id && $0.value.first?.next == nil }
        guard let (receiver, lane) = place, let entry = lane.first else { return }
        switch outcome {
        case .delivered: end(receiver, .delivered)
        case .refused(let error): end(receiver, .notDelivered(error))
        case .unanswered(let asked):
            let wait = Self.wait * (1 << min(entry.failureCount, 8))
            let least = min(asked ?? .zero, Self.longestAskedWait)
            lanes[receiver]?[0].failureCount += 1
            lanes[receiver]?[0].next = now + max(min(wait, Self.longestWait), least)
            outputs.append(.told(id: id, .pendingDelivery))
        }
        handleTimeout(at: now)
    }

    /// Sends what is due, and gives up what has waited too long.
    mutating func handleTimeout(at now: MediaTime) {
        for receiver in lanes.keys.sorted() {
            while let entry = lanes[receiver]?.first, let next = entry.next {
                guard now < entry.end else {
                    end(receiver, .notDelivered(Self.tooLate))
                    continue
                }
                guard next <= now, isReady(entry.item) else { break }
                lanes[receiver]?[0].next = nil
                outputs.append(.told(id: entry.item.id, .inProgress))
                outputs.append(.send(entry.item))
            }
        }
    }

    /// Gives up all texts, also those that are being sent.
    mutating func end(_ problem: PhoneError) {
        for receiver in lanes.keys.sorted() {
            while lanes[receiver] != nil { end(receiver, .notDelivered(problem)) }
        }
    }

    // MARK: Lanes

    private func isReady(_ item: Item) -> Bool {
        isNetworkReachable && item.account.map { registered.contains($0) } ?? true
    }

    private func deadline(of entry: Entry) -> MediaTime? {
        guard let next = entry.next else { return nil }
        return isReady(entry.item) ? min(next, entry.end) : entry.end
    }

    private mutating func hurry(at now: MediaTime, _ isMeant: (Item) -> Bool) {
        for (receiver, lane) in lanes {
            guard let entry = lane.first, entry.next != nil, isMeant(entry.item) else { continue }
            lanes[receiver]?[0].next = now
        }
        handleTimeout(at: now)
    }

    /// Ends the first text for a receiver.
    private mutating func end(_ receiver: String, _ state: TextState) {
        guard let id = lanes[receiver]?.first?.item.id else { return }
        outputs.append(.told(id: id, state))
        take(0, of: receiver)
    }

    private mutating func take(_ place: Int, of receiver: String) {
        lanes[receiver]?.remove(at: place)
        count -= 1
        if lanes[receiver]?.isEmpty == true { lanes[receiver] = nil }
    }

    private static let tooLate = PhoneError(
        .unanswered,
        "The text could not be delivered within three days. Send it again once the other side can be reached."
    )
}

extension TextOutbox.Outcome {
    /// What came of a try that failed.
    init(_ error: PhoneError, retryAfter: Duration? = nil) {
        self = error.isFinalForText ? .refused(error) : .unanswered(after: retryAfter)
    }
}

extension PhoneError {
    /// Whether a text that failed so will fail so the next time, too.
    package var isFinalForText: Bool {
        switch code {
        case .refused(let status): status != 408 && status != 503
        case .invalid: true
        default: false
        }
    }
}
