import CallBasics
import CallCore
import MediaEngine
import SIP
import SIPTransport

/// Makes one call, and follows it to its end.
struct SIPOutgoingCall {
    let party: SIPParty
    let engine: CallEngine
    let target: SIPURI
    /// As it was given.
    let uri: String
    let security: MediaSecurityOptions
    let format: MediaFormatOptions
    let teller: SIPTeller
    var headers: [(name: String, value: String)] = []
    var isOfferDelayed = false
    /// After how many seconds it is taken back, answered or not.
    var cancelAfter: Double?
    /// Whether messages on the way to the target go by TLS alone.
    var isByTLS = false

    /// Makes the sound of a call, by what it comes from and goes to.
    typealias MakeSound = @Sendable (@escaping @Sendable (inout CallConfiguration) -> Void) async throws -> CallSound

    /// Calls, and returns once the call is over.
    ///
    /// - Parameters:
    ///   - wishes: What is done in it.
    ///   - ends: Says where the sound comes from and goes to.
    ///   - whenCalling: Hears of the call as soon as there is one.
    ///   - talk: Begins when it is answered, and is cancelled with its end; makes sound for calls beside it.
    /// - Returns: What it came to.
    /// - Throws: `EngineError`, `PhoneError` and `ToolFailure` when no call could be made
    func run(
        _ wishes: SIPCallRun.Wishes,
        _ ends: @escaping @Sendable (inout CallConfiguration) -> Void,
        whenCalling: (SIPCallRun) -> Void = { _ in },
        talk: @escaping @Sendable (SIPCallRun, @escaping MakeSound) async -> Void
    ) async throws -> SIPCallReport {
        var iterator = party.endpoint.events.makeAsyncIterator()
        let makeSound = try await soundMaker()
        let media = try await makeSound(ends)
        let start = MonotonicClock.current
        var made = UserAgent.CallWishes(session: media.session, account: party.account)
        (made.spareSessions, made.isOfferDelayed, made.headers) = (media.spareSessions, isOfferDelayed, headers)
        let (target, asked) = (target, made)
        let (handle, callID) = try await party.endpoint.perform { agent, now in
            let handle = try agent.call(target, asked, at: now)
            return (handle, agent.callID(of: handle) ?? "")
        }
        let run = SIPCallRun(
            handle,
            of: party,
            media,
            wishes,
            peer: uri,
            callID: callID,
            start: start,
            teller
        )
        whenCalling(run)
        let hurry = Task { await interrupt(run) }
        var talking: Task<Void, Never>?
        defer {
            hurry.cancel()
            talking?.cancel()
        }
        while await !run.hasEnded, let event = await iterator.next() {
            if case .targets(_, let targets) = event, await !run.isAnswered { tell(targets, callID) }
            await run.receive(event)
            if case .established(handle) = event { talking = Task { await talk(run, makeSound) } }
        }
        return try await run.report(party.counts())
    }

    private func soundMaker() async throws -> MakeSound {
        let host = party.mediaHost
        security.srtp.warn(at: party.local, isTLS: isByTLS || target.goesByTLS)
        // A proxy on the way, or another target, may go by something else.
        let isPrivate = isByTLS || party.local.isLoopback
        let ice = try await security.way()
        return { [security, engine, format] ends in
            try await security.sound(of: engine, at: host, format, ice: ice, isPrivate: isPrivate, ends)
        }
    }

    private func tell(_ targets: [Target], _ callID: String) {
        let names = targets.map { SIPParty.text($0.transport, $0.address) }
        teller.tell(
            "calling",
            [
                ("callID", .string(callID)), ("to", .string(uri)),
                ("targets", .array(names.map { .string($0) })),
            ],
            text: "Calling \(uri) at \(names.first ?? "")."
        )
    }

    /// Ends the call by Ctrl-C, or when it is to be taken back.
    private func interrupt(_ run: SIPCallRun) async {
        let takeBack = Task {
            guard let cancelAfter else { return }
            try await Task.sleep(for: .seconds(fraction: cancelAfter))
            await run.hangUp()
        }
        await Interruption.wait()
        takeBack.cancel()
        if !Task.isCancelled { await run.hangUp() }
    }
}
