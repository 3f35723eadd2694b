import CallBasics
import CallCore
import MediaEngine
import SDP
import SIP
import SIPTransport

/// One call by SIP with its sound, from its first message to its report.
///
/// Where the other side leads it to somebody else, the sound goes along: it is one call to its user.
actor SIPCallRun {
    /// What is done in it.
    struct Wishes: Sendable {
        /// Sent from 0.5 s after the answer on.
        var keys: DTMFSequence?
        /// How keys are sent; nil as was agreed on.
        var keyWay: DTMFWay?
        /// Whether the other side may lead it to somebody else.
        var followsTransfers = false
        /// Hears of the other side's keys.
        var takesKey: @Sendable (Character) -> Void = { _ in }
        /// Hears of its end, before its sound ends.
        var takesEnd: @Sendable (CallEnd) async -> Void = { _ in }
        /// Hears whether either side holds the call.
        var takesHold: @Sendable (Bool) -> Void = { _ in }
        /// Hears how a transfer goes on that this side wanted.
        var takesTransfer: @Sendable (_ target: String, TransferProgress) -> Void = { _, _ in }
    }

    /// The call that it began as.
    nonisolated let handle: CallHandle
    /// The call that talks; another one once the other side has led to somebody else.
    var current: CallHandle
    /// The call that is made for the other side's transfer, until it is answered.
    var followed: CallHandle?
    /// How the call ended that talked, when that was before the answer of the followed one.
    var formerEnd: CallEnd?
    /// Calls that it has left, and that end soon.
    var left: [CallHandle] = []
    /// What the call that talks was agreed on last.
    var lastSession: AgreedSession?
    /// What the followed one was.
    var followedSession: AgreedSession?
    let party: SIPParty
    let sound: CallSound
    let teller: SIPTeller
    let wishes: Wishes
    var peer: String
    nonisolated let callID: String
    private let start: MediaTime
    private var ringTime: MediaTime?
    private var answerTime: MediaTime?
    private var endTime: MediaTime?
    private var infoKeys = ""
    /// Whether a provisional response described sound.
    private var isEarly = false
    private(set) var isHeld = (us: false, them: false)
    /// Whether silence is sent in the place of what is spoken.
    var isMuted = false
    var transferTarget = ""
    /// Whether the call was held before the transfer that goes on; nil while none does.
    var heldBefore: Bool?
    /// The call to whom this one is to be handed over.
    var other: (handle: CallHandle, sound: CallSound)?
    private var tasks: [Task<Void, Never>] = []
    private(set) var end: CallEnd?
    /// Why its sound could not be had.
    private(set) var failure: String?
    /// The other side's certificate, of which was told.
    private var toldFingerprint: String?
    /// Whether the end of the sound is waited for.
    private var isWatched = false

    init(
        _ handle: CallHandle,
        of party: SIPParty,
        _ sound: CallSound,
        _ wishes: Wishes,
        peer: String,
        callID: String,
        start: MediaTime,
        _ teller: SIPTeller
    ) {
        (self.handle, self.party, self.sound, self.wishes, self.peer) = (handle, party, sound, wishes, peer)
        (self.callID, self.start, self.teller, current) = (callID, start, teller, handle)
    }

    /// What is offered, or answered with.
    nonisolated var session: SessionConfiguration { sound.session }
    var isAnswered: Bool { answerTime != nil }
    var hasEnded: Bool { end != nil }
    /// Whether the last of the input was sent.
    var isInputOver: Bool { get async { await sound.call?.isSourceEnded ?? false } }

    /// Takes what the agent tells of the call, and of those that it leads to.
    func receive(_ event: AgentEvent) async {
        let now = MonotonicClock.current
        if case .incoming(let handle, let invite) = event { return await meet(handle, invite) }
        if event.call == other?.handle { return await receiveOther(event) }
        if event.call == followed { return await receiveFollowed(event, at: now) }
        guard event.call == current else {
            if case .ended(let handle, _) = event { left.removeAll { $0 == handle } }
            return
        }
        switch event {
        case .progress(_, let response):
            ringTime = ringTime ?? now
            isEarly = !response.body.isEmpty
            let code = response.statusCode ?? 0
            teller.tell(
                "progress",
                [
                    ("code", .integer(code)), ("phrase", .string(response.reasonPhrase)),
                    ("tag", JSONValue((try? response.to())?.tag?.text)),
                    ("sinceInviteMs", .number((now - start).roundedMilliseconds)),
                ],
                text: "\(code) \(response.reasonPhrase)"
            )
        case .agreed(_, let session):
            lastSession = session
            await agree(session)
        case .established:
            answerTime = now
            await tellConnected(now)
            Task { await awaitKeys() }
        case .key(_, let relay):
            infoKeys.append(relay.key)
            tell(key: relay.key, way: .info)
        case .changeRefused(_, let status):
            teller.tell("changeRefused", [("code", .integer(status))], text: "The change was refused: \(status).")
        case .transfer(_, let progress): await follow(progress)
        case .transferRequested(_, let wishes): await follow(wishes)
        case .ended(_, let end):
            // Whoever asks for another call need not stay for it.
            if followed != nil { return formerEnd = end }
            await finish(end, at: now)
        default: break
        }
    }

    func finish(_ end: CallEnd, at now: MediaTime) async {
        (self.end, endTime) = (end, now)
        for task in tasks { task.cancel() }
        await hangUpOthers()
        await wishes.takesEnd(end)
    }

    func agree(_ session: AgreedSession) async {
        let isFirst = await sound.call == nil
        do {
            try await sound.apply(session)
        } catch {
            failure = "\(error)"
            return await hangUp()
        }
        if isFirst, let call = await sound.call {
            if isMuted { call.isMuted = true }
            if isEarly, answerTime == nil { teller.tell("earlyMedia", text: "Sound comes before the answer.") }
            tasks.append(Task { for await event in call.events { handle(event) } })
        }
        if answerTime != nil { Task { await awaitKeys() } }
        guard let audio = session.audio else { return }
        note(audio.isHeldLocally, &isHeld.us, by: "us")
        note(audio.isHeldRemotely, &isHeld.them, by: "them")
        wishes.takesHold(isHeld.us || isHeld.them)
    }

    /// Tells when DTLS has made keys, and ends the call when it cannot, or ICE has lost the other side.
    private func awaitKeys() async {
        do throws(PhoneError) {
            try await sound.secured()
            if let security = await sound.security { tell(security) }
            guard !isWatched else { return }
            isWatched = true
            tasks.append(Task { for await _ in sound.losses { await findWay() } })
            await sound.ended()
            if let failure = sound.securityFailure { throw failure }
        } catch {
            guard end == nil else { return }
            failure = error.message
            await hangUp()
        }
    }

    private func tell(_ security: CallSecurity) {
        guard let fingerprint = security.fingerprint, fingerprint != toldFingerprint else { return }
        toldFingerprint = fingerprint
        let members: [(String, JSONValue)] = [
            ("suite", .string(security.suite)), ("fingerprint", .string(fingerprint)),
        ]
        teller.tell("secured", members, text: "Secured: \(security.suite), certificate \(fingerprint).")
    }

    private func note(_ isNow: Bool, _ was: inout Bool, by side: String) {
        guard isNow != was else { return }
        was = isNow
        teller.tell(
            isNow ? "held" : "resumed",
            [("by", .string(side))],
            text: "\(isNow ? "Held" : "Resumed") by \(side)."
        )
    }

    private func handle(_ event: CallEvent) {
        switch event {
        case .keyDown(let digit): tell(key: digit.character, way: .rtp)
        case .mediaStalled(let duration):
            teller.tell(
                "mediaStalled",
                [("seconds", .number(duration.roundedSeconds))],
                text: "Nothing was heard for \(Int(duration.roundedSeconds)) s."
            )
        default: break
        }
    }

    private func tell(key: Character, way: DTMFWay) {
        teller.tell("digit", [("digit", .string("\(key)")), ("way", .string(way.rawValue))], text: "Key \(key)")
        wishes.takesKey(key)
    }

    private func tellConnected(_ now: MediaTime) async {
        let media = await sound.agreed
        let codec = media?.sending.codecs.first
        let remote = media?.remote.map { "\($0.host):\($0.port)" }
        let setup = (now - start).roundedMilliseconds
        teller.tell(
            "connected",
            [
                ("callID", .string(callID)), ("setupMs", .number(setup)),
                ("codec", codec.map { .string($0.encodingName) } ?? .null),
                ("payloadType", codec.map { .integer(Int($0.payloadType)) } ?? .null),
                ("remoteMedia", remote.map { .string($0) } ?? .null),
                ("direction", media.map { .string($0.direction.rawValue) } ?? .null),
                ("srtp", .string(SRTPWish(sound.encryption).rawValue)),
                ("suite", JSONValue(await sound.security?.suite)),
            ],
            text: "Connected with \(peer) after \(Int(setup)) ms: \(codec?.encodingName ?? "no codec yet")."
        )
    }

    /// Tells how a transfer goes on: once the other side talks to the target it is left, else it is taken from hold.
    private func follow(_ progress: TransferProgress) async {
        let (state, code) = progress.words
        teller.tell(
            "transfer",
            [("to", .string(transferTarget)), ("state", .string(state)), ("code", .integer(code))],
            text: "Transfer to \(transferTarget): \(state) (\(code))."
        )
        wishes.takesTransfer(transferTarget, progress)
        switch progress {
        case .accepted, .progress: break
        case .done: await hangUp()
        case .failed:
            await hangUpOthers()
            await setHeld(heldBefore.take() ?? false)
        }
    }

    /// Takes what the agent tells of the call to somebody else: once that is answered, this one is handed over.
    private func receiveOther(_ event: AgentEvent) async {
        guard let other else { return }
        switch event {
        case .agreed(_, let session): try? await other.sound.apply(session)
        case .established:
            let (handle, target) = (current, other.handle)
            do {
                try await party.endpoint.perform { agent, now in try agent.transfer(handle, to: target, at: now) }
            } catch {
                await follow(.failed(status: 400))
            }
        case .ended(_, let end):
            self.other = nil
            _ = try? await other.sound.end(after: .zero)
            // One that was answered ends because the other side has taken its place.
            if case .refused(let status) = end.cause { await follow(.failed(status: status)) }
            if case .failed = end.cause { await follow(.failed(status: 503)) }
            if case .timeout = end.cause { await follow(.failed(status: 408)) }
        default: break
        }
    }

    // MARK: What it came to

    /// Ends the sound, and gives the report: the last line, and what failed.
    func report(_ counts: (sent: Int, received: Int, repeats: Int)) async throws -> SIPCallReport {
        if let other { _ = try? await other.sound.end(after: .zero) }
        let keys = await sound.call?.receivedKeys ?? ""
        let talk = answerTime.map { (endTime ?? $0) - $0 }
        let media = try await sound.end(after: talk ?? .zero)
        return SIPCallReport(
            end: end ?? CallEnd(.us, .cancelled),
            peer: peer,
            callID: callID,
            setup: answerTime.map { $0 - start },
            ringing: ringTime.map { (answerTime ?? endTime ?? $0) - $0 },
            talk: talk,
            media: media,
            counts: counts,
            keys: keys + infoKeys,
            security: await sound.security,
            soundFailure: failure ?? (answerTime == nil ? nil : sound.securityFailure?.message),
            securityFailure: await party.securityFailure
        )
    }
}

extension TransferProgress {
    /// The state as lines name it, and the status.
    fileprivate var words: (state: String, code: Int) {
        switch self {
        case .accepted(let status): ("accepted", status)
        case .progress(let status): ("trying", status)
        case .done(let status): ("done", status)
        case .failed(let status): ("failed", status)
        }
    }
}
