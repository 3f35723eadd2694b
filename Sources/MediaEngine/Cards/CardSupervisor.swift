import Synchronization

/// An opened endpoint on its way between the control side and the media thread; freeing it closes the card.
final class CardSlot<Endpoint: Sendable>: Sendable {
    let endpoint: Endpoint

    init(_ endpoint: Endpoint) { self.endpoint = endpoint }
}

/// Opens a card off the media thread, and opens it again whenever it has gone.
///
/// The media thread says that it has no card (`report`); `serve` then tries to open one, at first at once and then
/// less and less often, and hands it over. What the media thread gives back is closed here too.
/// Thread: `report`, `take` and `retire` media; the rest control or background.
public final class CardSupervisor<Endpoint: Sendable>: BackgroundService {
    typealias Opener = @Sendable (MediaTime) throws(CardError) -> Endpoint

    private struct State {
        var nextAttempt = MediaTime.zero
        var pause = CardSupervisor.shortestPause
        var service: (any BackgroundService)?
        var lastError: CardError?
    }

    private let opener: Opener
    private let handOff = HandOff<CardSlot<Endpoint>>()
    private let serviceOf: @Sendable (Endpoint) -> (any BackgroundService)?
    private let need = Atomic(CardNeed.none)
    private let tickTime = Atomic<Int64>(0)
    private let state = Mutex(State())

    private static var shortestPause: Duration { .milliseconds(100) }
    private static var longestPause: Duration { .seconds(2) }

    init(
        service: @escaping @Sendable (Endpoint) -> (any BackgroundService)?,
        open opener: @escaping Opener
    ) {
        self.opener = opener
        serviceOf = service
    }

    /// Why the card could not be opened the last time, or nil once it could.
    public var lastError: CardError? { state.withLock { $0.lastError } }

    /// Opens the card now, on the caller's thread, and hands it to the media thread, unless that has one.
    ///
    /// - Throws: `CardError` when it cannot be opened.
    public func open(at now: MediaTime) throws(CardError) {
        guard need.load(ordering: .acquiring) != .met else { return }
        try state.withLock { state throws(CardError) in try attempt(&state, at: now) }
    }

    /// Closes what came back from the media thread, opens the card again when that is due, and serves the endpoint.
    public func serve() {
        handOff.reclaim()
        let now = MediaTime(nanoseconds: tickTime.load(ordering: .acquiring))
        let service: (any BackgroundService)? = state.withLock { state in
            if need.load(ordering: .acquiring) == .missing, now >= state.nextAttempt {
                // The error is kept for whoever asks; the next attempt follows by itself.
                do throws(CardError) { try attempt(&state, at: now) } catch {}
            }
            return state.service
        }
        service?.serve()
    }

    private func attempt(_ state: inout State, at now: MediaTime) throws(CardError) {
        do throws(CardError) {
            let endpoint = try opener(now)
            state.service = serviceOf(endpoint)
            state.lastError = nil
            state.pause = Self.shortestPause
            // In this order: a tick between the two finds the card, and does not ask for it again.
            handOff.offer(CardSlot(endpoint))
            need.store(.met, ordering: .releasing)
        } catch {
            state.lastError = error
            state.nextAttempt = now + state.pause
            state.pause = min(state.pause * 2, Self.longestPause)
            throw error
        }
    }

    // MARK: Media thread

    /// Tells the time of the tick, by which pauses between attempts are measured.
    func noteTick(_ now: MediaTime) { tickTime.store(now.nanoseconds, ordering: .releasing) }

    /// Asks for a card to be opened.
    func report() { need.store(.missing, ordering: .releasing) }

    /// Takes back the wish for a card, and gives back one that was opened and not taken yet.
    func withdraw() {
        need.store(.none, ordering: .releasing)
        if let slot = handOff.take() { handOff.retire(slot) }
    }

    func take() -> Unmanaged<CardSlot<Endpoint>>? { handOff.take() }

    func retire(_ slot: Unmanaged<CardSlot<Endpoint>>) { handOff.retire(slot) }
}

/// Whether the media thread needs a card.
private enum CardNeed: UInt8, AtomicRepresentable {
    case none
    case missing
    case met
}
