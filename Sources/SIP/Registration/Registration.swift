package import CallBasics

/// The registration of one binding: wishes, responses and time go in, REGISTERs and changes of state come out.
///
///     none ──register──► progress ──2xx──► ok ──time──► refreshing ──2xx──► ok
///                                 ──else─► failed ──time, wish──► progress
///     any  ──unregister─► progress ──any──► cleared
///
/// After each call, `poll` until it is nil. Never are two requests under way. It owns no transaction: what `poll` gives
/// is sent with a Via, and its final response or failure is told here. A 401 or 407 is told only when it cannot be
/// answered; the request that answers it gets its number by `renumber`.
/// Thread: control; it allocates. A copy is a snapshot.
/// Source: RFC 3261, section 10.2; RFC 5626, section 4
package struct Registration: Sendable {
    package enum State: Hashable, Sendable { case none, progress, ok, refreshing, cleared, failed }

    /// Why a state was entered.
    package enum Reason: Hashable, Sendable {
        case wish
        case time
        case accepted
        /// The status code that ended it.
        case status(Int)
        case failure(TransactionFailure)
        /// The registrar lists other bindings and not this one.
        case notListed
        /// What the configuration says cannot be written.
        case notWritable
        case networkDown, networkUp
    }

    package enum Warning: Hashable, Sendable {
        /// The 2xx lists no binding.
        case nothingListed
        /// The registrar does not take the push parameters; the binding was made without them.
        case pushNotServed
        /// A wish waits for the network.
        case noNetwork
    }

    package enum Output: Sendable {
        /// A REGISTER without Via.
        case send(SIPMessage)
        case state(old: State, new: State, Reason)
        case warning(Warning)
    }

    /// What the user agent knows when an attempt failed.
    package struct Surroundings: Hashable, Sendable {
        /// Whether the domain has a target that was not tried yet; the next request goes there.
        package var hasNextTarget = false
        /// Whether another flow of the account lives.
        package var hasOtherFlow = false

        package init(hasNextTarget: Bool = false, hasOtherFlow: Bool = false) {
            (self.hasNextTarget, self.hasOtherFlow) = (hasNextTarget, hasOtherFlow)
        }
    }

    enum Wish: Hashable, Sendable { case register, unregister }

    /// The request under way.
    struct Running: Sendable {
        var wish: Wish
        var request: RegisterRequest
        var contact: NameAddress
        /// Whether it was sent again for the registrar's shortest time.
        var isLengthened = false
    }

    package private(set) var configuration: RegistrationConfiguration
    package private(set) var state = State.none
    /// What was granted last; nil when nothing is bound as far as is known.
    package internal(set) var binding: RegistrationBinding?
    /// When `handleTimeout` is to be called; nil when nothing waits for time.
    package internal(set) var deadline: MediaTime?
    @Boxed var running: Running?
    private var waiting: Wish?
    private var isWanted = false
    private var isReachable = true
    /// Whether a REGISTER was sent that may have made a binding.
    private var mayBeBound = false
    /// The time to ask for; longer than configured when the registrar wants that.
    var expires: UInt32
    var isPushRefused = false
    var schedule: RegistrationSchedule
    private let callID, tag: Bytes
    private var number: UInt32 = 0
    /// What the last final response was called by the registrar; nil before it, and when there was none.
    package internal(set) var phrase: String?
    private var outputs: [Output] = []

    /// The generator gives Call-ID and tag, and spreads the times.
    package init(_ configuration: RegistrationConfiguration, generator: SeededGenerator) {
        var generator = generator
        callID = (generator.next().hexadecimal + generator.next().hexadecimal).detached
        tag = generator.next().hexadecimal
        (self.configuration, expires) = (configuration, configuration.expires)
        schedule = RegistrationSchedule(generator)
    }

    /// The next thing to do; nil when all is done.
    package mutating func poll() -> Output? {
        guard let first = outputs.first else { return nil }
        // Nothing waits but around a request: an array that is emptied would keep its memory.
        if outputs.count == 1 { outputs = [] } else { outputs.removeFirst() }
        return first
    }

    /// Whether a request is under way.
    package var isRunning: Bool { running != nil }

    /// How many REGISTERs were sent, those that answer challenges among them.
    package var requestCount: Int { Int(number) }

    /// Makes the binding, or makes it anew: by wish, or when credentials have changed.
    package mutating func register(at now: MediaTime) {
        isWanted = true
        begin(.register, .wish)
    }

    /// Whether it did not get through, and waits for its time.
    var isToBeTriedAgain: Bool { state == .failed && deadline != nil && isUnanswered }
    /// Whether the last request was not answered.
    var isUnanswered = false

    /// Makes the binding anew if it is wanted.
    package mutating func refresh(at now: MediaTime) {
        guard isWanted else { return }
        begin(.register, .wish)
    }

    /// Makes the binding anew, since its flow has ended: at once, or where one after the other ended soon, in a while that grows.
    ///
    /// `isProven` says that the flow worked before.
    /// Source: RFC 5626, section 4.5
    package mutating func replaceFlow(isProven: Bool, at now: MediaTime) {
        guard isWanted else { return }
        guard running == nil, isReachable, let delay = schedule.lossDelay(isProven: isProven) else {
            return begin(.register, .wish)
        }
        deadline = now + delay
        isUnanswered = true
        finish(.failed, .failure(.unreachable))
    }

    /// Takes the own binding away, no other; with `isOfFormer` also one that a process before this one, of the same instance, may
    /// have made.
    package mutating func unregister(isOfFormer: Bool = false, at now: MediaTime) {
        isWanted = false
        guard mayBeBound || running != nil || isOfFormer else {
            deadline = nil
            return enter(.cleared, .wish)
        }
        begin(.unregister, .wish)
    }

    /// Takes another contact, token or server; a binding that is wanted is made anew.
    package mutating func update(_ configuration: RegistrationConfiguration, at now: MediaTime) {
        guard configuration != self.configuration else { return }
        if configuration.push != self.configuration.push { isPushRefused = false }
        (self.configuration, expires) = (configuration, configuration.expires)
        refresh(at: now)
    }

    /// Without network nothing is sent and nothing is a fault; with it, what is wanted is done at once.
    package mutating func setNetworkReachable(_ isReachable: Bool, at now: MediaTime) {
        guard isReachable != self.isReachable else { return }
        self.isReachable = isReachable
        if isReachable {
            guard let wish = waiting ?? (isWanted ? .register : nil) else { return }
            waiting = nil
            return begin(wish, .networkUp)
        }
        if running?.wish == .unregister, waiting == nil { waiting = .unregister }
        (running, deadline) = (nil, nil)
        if state != .cleared { enter(.none, .networkDown) }
    }

    package mutating func handleTimeout(at now: MediaTime) {
        guard let deadline, deadline <= now else { return }
        begin(.register, .time)
    }

    /// Gives a request that answers a challenge the next number.
    ///
    /// Throws: `badRequest` when no request is under way
    package mutating func renumber(_ request: inout SIPMessage) throws(SIPError) {
        guard running != nil else { throw SIPError(.badRequest, "No REGISTER is under way. Drop the challenge.") }
        let next = number + 1
        number = next
        running?.request.number = next
        try request.set(.cSeq, to: CSeq(number, .register))
    }

    /// Says in the REGISTER under way where requests are to come, once it is known which way it leaves; later ones say the same.
    ///
    /// Throws: `badRequest` when no request is under way, or the contact cannot be written
    package mutating func place(_ contact: SIPURI, in request: inout SIPMessage) throws(SIPError) {
        guard var running else { throw SIPError(.badRequest, "No REGISTER is under way. Drop the request.") }
        var changed = configuration
        changed.contact = contact.detached
        running.contact = try running.request.contact(changed)
        try request.set(.contact, to: running.contact)
        (self.running, configuration) = (running, changed)
    }

    mutating func enter(_ state: State, _ reason: Reason) {
        let old = self.state
        guard state != old || state == .ok || state == .failed else { return }
        self.state = state
        outputs.append(.state(old: old, new: state, reason))
    }

    mutating func warn(_ warning: Warning) { outputs.append(.warning(warning)) }

    /// Sends a REGISTER, or keeps the wish until that can be.
    private mutating func begin(_ wish: Wish, _ reason: Reason) {
        guard isReachable else {
            waiting = wish
            return warn(.noNetwork)
        }
        guard running == nil else {
            waiting = wish
            return
        }
        deadline = nil
        enter(wish == .register && state == .ok ? .refreshing : .progress, reason)
        send(wish)
    }

    /// Sends a REGISTER without a change of state.
    mutating func send(_ wish: Wish, isLengthened: Bool = false) {
        number += 1
        isUnanswered = false
        let request = RegisterRequest(
            callID: callID,
            tag: tag,
            number: number,
            expires: wish == .register ? expires : 0,
            hasPush: !isPushRefused
        )
        do {
            let message = try request.message(configuration)
            let contact = try request.contact(configuration)
            running = Running(wish: wish, request: request, contact: contact, isLengthened: isLengthened)
            mayBeBound = true
            outputs.append(.send(message))
        } catch {
            running = nil
            enter(.failed, .notWritable)
        }
    }

    /// Ends the request under way in a state, and does what was wished for meanwhile.
    mutating func finish(_ state: State, _ reason: Reason) {
        running = nil
        if state == .cleared { (mayBeBound, binding, deadline) = (false, nil, nil) }
        enter(state, reason)
        guard let wish = waiting else { return }
        waiting = nil
        guard wish == .register || mayBeBound else { return }
        begin(wish, .wish)
    }
}
