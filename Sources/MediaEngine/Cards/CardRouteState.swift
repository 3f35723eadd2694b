import CallBasics

/// Which card a route uses, and what is to be done when something happens: the decisions of `CardRoute`.
///
///     nobody uses it ─ use ─► opening ─► open ─ lost ─► opening the wanted card, then each fallback
///           ▲                   │          │                │ none opens: silence, tried again after a pause
///           └───── release ─────┴──────────┘                ▼ a fallback opens: the wanted card is tried each second
///
/// Pure: the present time is an argument.
struct CardRouteState: Sendable {
    /// A card that is being opened.
    struct Attempt: Sendable {
        let number: Int
        let card: any SoundCard
        let deadline: MediaTime
        /// Who asked for this card by `setCard`, and waits.
        let request: Int?
    }

    /// What is to be done, in this order.
    enum Action: Sendable {
        /// Open the card, without a lock, and tell by `finish`.
        case open(Attempt)
        /// Hand this card to the media thread, under this number.
        case put(any CardEndpoint, number: Int)
        /// Take the card away from the media thread, and close it.
        case take
        /// Tell the application.
        case tell(CardRouteEvent.Kind, card: String)
        /// Another card is in use than before.
        case change(from: String, to: String, RouteChange.Cause)
        /// Answer who asked for a card.
        case answer(request: Int, CardError?)
    }

    /// The card that the application wants.
    private(set) var wanted: any SoundCard
    /// Why the wanted card did not open the last time; nil once it did.
    private(set) var lastError: CardError?
    /// The card in use.
    private(set) var current: (any SoundCard)?
    /// Its number.
    private(set) var currentNumber = 0

    private let direction: CardDirection
    private var fallbacks: [any SoundCard]
    private var userCount = 0
    private var hasEnded = false
    private var isAllowed = true
    private var attempt: Attempt?
    private var attemptCount = 0
    /// What is tried when the attempt fails.
    private var queue: [any SoundCard] = []
    private var nextAttempt: MediaTime?
    private var pause = CardRouteState.shortestPause
    private var openTime = MediaTime.zero
    /// The card that was in use last.
    private var last: (any SoundCard)?
    /// Whether the application knows that the wanted card is not in use.
    private var isMissed = false
    /// Openings that took too long, or that nobody waits for any more, and still go on.
    private var hanging: [Attempt] = []

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(2)
    /// How often the wanted card is tried while another stands in.
    private static let probeInterval = Duration.seconds(1)
    /// A card that goes away sooner after its opening is not opened again at once.
    private static let shortestUse = Duration.milliseconds(500)
    /// An opening that takes longer is not waited for.
    static let patience = Duration.seconds(5)

    init(_ direction: CardDirection, to card: any SoundCard, fallbacks: [any SoundCard]) {
        self.direction = direction
        wanted = card
        self.fallbacks = fallbacks
    }

    /// Whether a card is to be open.
    var isNeeded: Bool { userCount > 0 && isAllowed && !hasEnded }

    /// Whether somebody uses the route.
    var isInUse: Bool { userCount > 0 }

    /// Whether a card is being opened.
    var isOpening: Bool { attempt != nil }

    /// When `check` has something to do.
    var deadline: MediaTime? { attempt?.deadline ?? nextAttempt }

    // MARK: Users

    mutating func use(at now: MediaTime) -> [Action] {
        userCount += 1
        return userCount == 1 ? begin(at: now) : []
    }

    mutating func release() -> [Action] {
        userCount -= 1
        precondition(userCount >= 0, "a card is released once by each of its users")
        return userCount == 0 ? stop() : []
    }

    /// Lets a card be open while somebody uses the route, or keeps it closed.
    mutating func allow(_ isAllowed: Bool, at now: MediaTime) -> [Action] {
        guard isAllowed != self.isAllowed else { return [] }
        self.isAllowed = isAllowed
        return isAllowed ? begin(at: now) : stop()
    }

    /// Uses no card any more, whoever asks.
    mutating func end() -> [Action] {
        hasEnded = true
        return stop()
    }

    private mutating func stop() -> [Action] {
        var actions: [Action] = []
        if let request = attempt?.request, let card = attempt?.card {
            wanted = card
            actions.append(.answer(request: request, nil))
        }
        abandonAttempt()
        queue = []
        nextAttempt = nil
        pause = Self.shortestPause
        isMissed = false
        last = nil
        guard let card = current.take() else { return actions }
        return actions + [.take, .tell(.cardClosed, card: card.description.name)]
    }

    // MARK: Wishes

    /// Cards that may stand in from now on.
    mutating func setFallbacks(_ cards: [any SoundCard], at now: MediaTime) -> [Action] {
        fallbacks = cards
        return current == nil ? begin(at: now) : []
    }

    /// The application wants `card`; what becomes of it is answered to `request`.
    ///
    /// While a card is in use, it stays so until the new one is open.
    mutating func setCard(_ card: any SoundCard, request: Int, at now: MediaTime) -> [Action] {
        pause = Self.shortestPause
        if let attempt, opensSame(attempt.card, card), isNeeded { return join(attempt, card, request) }
        var actions: [Action] = []
        if let earlier = attempt?.request {
            let message = "Another card was asked for before this one was open. Nothing is to be done."
            actions.append(.answer(request: earlier, CardError(.superseded, message)))
        }
        abandonAttempt()
        queue = []
        nextAttempt = nil
        guard isNeeded, card !== current else {
            wanted = card
            lastError = nil
            isMissed = false
            return actions + [.answer(request: request, nil)]
        }
        guard resume(card, request: request, at: now) else {
            return actions + [open(card, request: request, at: now)]
        }
        return actions
    }

    /// Waits once more for an opening of `card` that goes on though it was given up: a second one would find the card busy.
    private mutating func resume(_ card: any SoundCard, request: Int, at now: MediaTime) -> Bool {
        guard let index = hanging.firstIndex(where: { opensSame($0.card, card) }) else { return false }
        let number = hanging.remove(at: index).number
        attempt = Attempt(number: number, card: card, deadline: now + Self.patience, request: request)
        return true
    }

    /// Waits, as `request` for `card`, for an opening that is under way: a second one would find the card busy.
    private mutating func join(_ attempt: Attempt, _ card: any SoundCard, _ request: Int) -> [Action] {
        self.attempt = Attempt(
            number: attempt.number,
            card: card,
            deadline: attempt.deadline,
            request: request
        )
        queue = []
        nextAttempt = nil
        guard let earlier = attempt.request else { return [] }
        let message = "The card was asked for once more before it was open. Nothing is to be done."
        return [.answer(request: earlier, CardError(.superseded, message))]
    }

    // MARK: Opening

    /// Opens a card unless that is under way: the wanted one, or else the first that opens of those that may stand in.
    private mutating func begin(at now: MediaTime) -> [Action] {
        guard isNeeded, attempt == nil else { return [] }
        nextAttempt = nil
        queue = [wanted]
        if current == nil {
            queue += fallbacks.filter { card in
                !opensSame(card, wanted) && card.description.directions.contains(direction)
            }
        }
        queue = queue.filter { card in !hanging.contains { opensSame($0.card, card) } }
        return openNext(at: now)
    }

    private mutating func openNext(at now: MediaTime) -> [Action] {
        guard !queue.isEmpty else {
            waitForNextAttempt(at: now)
            return []
        }
        return [open(queue.removeFirst(), request: nil, at: now)]
    }

    private mutating func waitForNextAttempt(at now: MediaTime) {
        guard current == nil else { return nextAttempt = now + Self.probeInterval }
        nextAttempt = now + pause
        pause = min(pause * 2, Self.longestPause)
    }

    private mutating func open(_ card: any SoundCard, request: Int?, at now: MediaTime) -> Action {
        attemptCount += 1
        let attempt = Attempt(number: attemptCount, card: card, deadline: now + Self.patience, request: request)
        self.attempt = attempt
        return .open(attempt)
    }

    private mutating func abandonAttempt() {
        guard let attempt = attempt.take() else { return }
        hanging.append(attempt)
    }

    /// An attempt is over.
    ///
    /// What was opened and is not put anywhere by the actions is to be closed.
    mutating func finish(
        _ finished: Attempt,
        _ result: Result<any CardEndpoint, CardError>,
        at now: MediaTime
    ) -> [Action] {
        // Who waits for it may have changed meanwhile.
        guard let attempt, attempt.number == finished.number else { return finishLate(finished, result, at: now) }
        self.attempt = nil
        switch result {
        case .success(let endpoint): return adopt(endpoint, attempt, at: now)
        case .failure(let error): return fail(attempt, error, at: now)
        }
    }

    /// An attempt that was not waited for is over: a card that is still wanted is used all the same.
    private mutating func finishLate(
        _ finished: Attempt,
        _ result: Result<any CardEndpoint, CardError>,
        at now: MediaTime
    ) -> [Action] {
        hanging.removeAll { $0.number == finished.number }
        guard isNeeded, finished.card === wanted, current !== wanted, attempt?.request == nil else { return [] }
        switch result {
        case .success(let endpoint):
            abandonAttempt()
            return adopt(endpoint, finished, at: now)
        case .failure(let error):
            lastError = error
            return []
        }
    }

    private mutating func adopt(_ endpoint: any CardEndpoint, _ attempt: Attempt, at now: MediaTime) -> [Action] {
        let card = attempt.card
        let name = card.description.name
        currentNumber = attempt.number
        var actions = [Action.put(endpoint, number: attempt.number)]
        if let request = attempt.request {
            wanted = card
            isMissed = false
            actions.append(.answer(request: request, nil))
        }
        let isWanted = card === wanted
        if isWanted {
            lastError = nil
            actions.append(.tell(isMissed ? .cardBack : .cardOpened, card: name))
            isMissed = false
        } else {
            actions.append(.tell(.fallback(wanted: wanted.description.name), card: name))
        }
        if let last, last !== card {
            let cause: RouteChange.Cause = attempt.request != nil ? .asked : isWanted ? .returned : .unplugged
            actions.append(.change(from: last.description.name, to: name, cause))
        }
        current = card
        last = card
        queue = []
        openTime = now
        nextAttempt = isWanted ? nil : now + Self.probeInterval
        return actions
    }

    private mutating func fail(_ attempt: Attempt, _ error: CardError, at now: MediaTime) -> [Action] {
        if let request = attempt.request {
            if error.code == .busy, let current, isSameDevice(current, attempt.card) {
                return keep(attempt.card, request)
            }
            if current != nil, current !== wanted { nextAttempt = now + Self.probeInterval }
            return [.answer(request: request, error)] + (current == nil ? begin(at: now) : [])
        }
        var actions: [Action] = []
        if attempt.card === wanted {
            lastError = error
            if !isMissed {
                isMissed = true
                actions.append(.tell(.busy(error), card: wanted.description.name))
            }
        }
        return actions + openNext(at: now)
    }

    /// The card that was asked for is the one in use, under another object: it is busy because of us.
    private mutating func keep(_ card: any SoundCard, _ request: Int) -> [Action] {
        let isBack = isMissed
        wanted = card
        current = card
        last = card
        lastError = nil
        isMissed = false
        nextAttempt = nil
        let answer = Action.answer(request: request, nil)
        return isBack ? [answer, .tell(.cardBack, card: card.description.name)] : [answer]
    }

    /// Whether both objects stand for one device; a role stands for what it is bound to.
    private func isSameDevice(_ one: any SoundCard, _ other: any SoundCard) -> Bool {
        device(one).description.id == device(other).description.id
    }

    /// Whether there is nothing to be had from one of them that the other has not.
    private func opensSame(_ one: any SoundCard, _ other: any SoundCard) -> Bool {
        let (one, other) = (device(one), device(other))
        if let one = one as? ALSACard, let other = other as? ALSACard { return one.pcm == other.pcm }
        return one === other
    }

    private func device(_ card: any SoundCard) -> any SoundCard {
        guard let role = card as? RoleCard else { return card }
        return direction == .capture ? role.captureCard ?? role : role.playbackCard
    }

    // MARK: Watching

    /// The card number `number` is gone.
    mutating func lose(_ number: Int, at now: MediaTime) -> [Action] {
        guard number == currentNumber, let card = current.take() else { return [] }
        isMissed = true
        let told = Action.tell(.cardLost, card: card.description.name)
        guard now - openTime >= Self.shortestUse else {
            waitForNextAttempt(at: now)
            return [told]
        }
        pause = Self.shortestPause
        return [told] + begin(at: now)
    }

    /// Gives up an opening that takes too long, and tries again when it is time to.
    mutating func check(at now: MediaTime) -> [Action] {
        if let late = attempt {
            guard now >= late.deadline else { return [] }
            abandonAttempt()
            let name = late.card.description.name
            let message = "\(name) did not open within \(Self.patience). See whether its sound server answers."
            return fail(late, CardError(.timedOut, message), at: now)
        }
        guard let time = nextAttempt, now >= time else { return [] }
        return begin(at: now)
    }
}
