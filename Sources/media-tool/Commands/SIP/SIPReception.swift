import CallBasics
import CallCore
import MediaEngine
import SDP
import SIP
import SIPTransport

/// Who decides what becomes of calls that come to a party.
protocol SIPReceiver: Sendable {
    /// A call has come, and been told of.
    ///
    /// What takes its time is done beside: no other event is taken meanwhile.
    func receive(_ invite: SIPMessage, _ handle: CallHandle) async throws
    /// Something has become of a call, which has taken it.
    func note(_ event: AgentEvent, of run: SIPCallRun, _ handle: CallHandle) async
    /// A call is over, and no more than its report is left of it.
    func finish(_ run: SIPCallRun) async throws
    /// A call is over that never had sound.
    func finish(_ end: CallEnd) throws
}

/// Takes the calls that come to a party, and what becomes of them, one event after the other.
struct SIPReception {
    let party: SIPParty
    let teller: SIPTeller
    let desk = AnswerDesk()
    /// What must be offered.
    let security: MediaSecurityOptions

    /// Registers, and takes calls meanwhile and until it is interrupted.
    ///
    /// - Parameters:
    ///   - receiver: Decides about calls.
    ///   - registers: Whether the account, if there is one, is registered.
    ///   - callLimit: After how many it ends; nil for any number.
    ///   - seconds: After how long it ends, and the calls with it; nil for as long as it takes.
    /// - Throws: What `receiver` throws; `ToolFailure` when registering is refused, or was not answered before the end
    func serve(_ receiver: some SIPReceiver, registers: Bool, callLimit: Int?, seconds: Double?) async throws {
        let names = party.addresses
        teller.tell(
            "listening",
            [
                ("local", JSONValue(names.first)), ("addresses", .array(names.map { .string($0) })),
                ("account", JSONValue(party.address)),
            ],
            text: names.isEmpty
                ? "Called by own connections alone." : "Listening at \(names.joined(separator: ", "))."
        )
        var iterator = party.endpoint.events.makeAsyncIterator()
        var failure: ToolFailure?
        var course = registers ? try await party.beginRegistering(teller) : nil
        let (desk, endpoint) = (desk, party.endpoint)
        let watch = Task {
            await Interruption.wait(for: seconds.map { .seconds(fraction: $0) })
            guard !Task.isCancelled else { return }
            await desk.close()
            if await desk.isEmpty { await endpoint.close() }
        }
        defer { watch.cancel() }
        while let event = await iterator.next() {
            // Calls may come before the answer of the registrar.
            switch await course?.receive(event) {
            case .ok?: course = nil
            case .failed(let told, _)?:
                (course, failure) = (nil, told)
                // What has come by then ends in order.
                await desk.close()
            default: break
            }
            try await take(event, receiver)
            let (count, isClosed, isEmpty) = await (desk.endedCount, desk.isClosed, desk.isEmpty)
            if isEmpty, isClosed || count >= callLimit ?? .max { break }
        }
        if let failure { throw failure }
        if course != nil, await desk.endedCount == 0, !Interruption.hasCome { throw ToolFailure.unregistered }
    }

    private func take(_ event: AgentEvent, _ receiver: some SIPReceiver) async throws {
        if case .incoming(let handle, let invite) = event {
            // Whoever is about to leave takes no call.
            if await desk.isClosed { return await refuse(handle, status: 480) }
            if await admit(invite, handle) { try await receiver.receive(invite, handle) }
        } else if let handle = event.call, let run = await desk.run(handle) {
            await run.receive(event)
            if let followed = await run.followed { await desk.add(run, as: followed) }
            await receiver.note(event, of: run, handle)
            if await run.hasEnded {
                try await receiver.finish(run)
                await desk.remove(run)
            }
            if case .ended = event { await desk.forget(handle) }
        } else if case .ended(let handle, let end) = event, await !desk.wasUnacceptable(handle) {
            // It was refused before it had sound.
            await desk.noteRefusal()
            try receiver.finish(end)
        }
    }

    /// Tells of a call that has come, and refuses one whose sound is not secured as it must be.
    private func admit(_ invite: SIPMessage, _ handle: CallHandle) async -> Bool {
        let from = try? invite.from()
        let callID = invite.callID?.text ?? ""
        guard security.srtp.encryption.takes(try? invite.sessionDescription()) else {
            // The caller may offer otherwise: that is the call.
            await desk.noteUnacceptable(handle)
            teller.tell(
                "unacceptable",
                [("callID", .string(callID)), ("from", from.map { .string($0.uri.bytes.text) } ?? .null)],
                text:
                    "\(from?.uri.bytes.text ?? "Somebody") offered no sound that --srtp \(security.srtp.rawValue) takes."
            )
            await party.endpoint.perform { agent, now in agent.reject(handle, status: 488, at: now) }
            return false
        }
        teller.tell(
            "incoming",
            [
                ("callID", .string(callID)), ("from", from.map { .string($0.uri.bytes.text) } ?? .null),
                ("displayName", from?.displayName.map { .string($0.text) } ?? .null),
            ] + Self.members(of: try? invite.sessionDescription()),
            text: "Call from \(from?.uri.bytes.text ?? "somebody")."
        )
        return true
    }

    /// Refuses a call that is to have no sound.
    func refuse(_ handle: CallHandle, status: Int) async {
        await party.endpoint.perform { agent, now in agent.reject(handle, status: status, at: now) }
    }

    /// Refuses a call whose sound cannot be had; the others go on.
    func refuse(_ handle: CallHandle, because error: any Error) async {
        StandardError.write("Note: a call was refused: \(error)\n")
        await refuse(handle, status: 500)
    }

    /// The own address that a call came to, where all are listened on.
    func host(for handle: CallHandle) async -> String {
        guard party.local.isUnspecified else { return party.local.host }
        let address = await party.endpoint.perform { agent, _ in agent.localAddress(of: handle) }
        return address.flatMap { $0.isUnspecified ? nil : $0.host } ?? party.mediaHost
    }

    /// Has a call's events go to a run of its own.
    func begin(
        _ invite: SIPMessage,
        _ handle: CallHandle,
        _ sound: CallSound,
        _ wishes: SIPCallRun.Wishes
    ) async -> SIPCallRun {
        let run = SIPCallRun(
            handle,
            of: party,
            sound,
            wishes,
            peer: (try? invite.from())?.uri.bytes.text ?? "the caller",
            callID: invite.callID?.text ?? "",
            start: MonotonicClock.current,
            teller
        )
        await desk.add(run, as: handle)
        // It came while the others were ended.
        if await desk.isClosed { await run.hangUp() }
        return run
    }

    /// What a caller offers; nothing is known of it where he leaves the offer to this side.
    private static func members(of description: SessionDescription?) -> [(String, JSONValue)] {
        let media: [MediaDescription] = description?.media ?? []
        let audio = media.first { $0.kind == "audio" }
        let hasVideo = media.contains { $0.kind == "video" && $0.port > 0 }
        return [
            ("codecs", .array((audio?.formats ?? []).map { .string($0.encodingName) })),
            ("direction", JSONValue(audio?.direction.rawValue)), ("video", .bool(hasVideo)),
        ]
    }
}

/// The calls that are up.
actor AnswerDesk {
    private var runs: [CallHandle: SIPCallRun] = [:]
    private var unacceptable: Set<CallHandle> = []
    private(set) var endedCount = 0
    private(set) var isClosed = false

    var isEmpty: Bool { runs.isEmpty }

    func run(_ handle: CallHandle) -> SIPCallRun? { runs[handle] }
    func add(_ run: SIPCallRun, as handle: CallHandle) { runs[handle] = run }

    /// What a caller offers cannot be taken: no call has come yet.
    func noteUnacceptable(_ handle: CallHandle) { unacceptable.insert(handle) }

    /// Whether that was so of a call that has ended, asked once.
    func wasUnacceptable(_ handle: CallHandle) -> Bool { unacceptable.remove(handle) != nil }

    /// A call that was refused without sound is over.
    func noteRefusal() { endedCount += 1 }

    /// One call of a run has ended, and others may go on.
    func forget(_ handle: CallHandle) { runs[handle] = nil }

    func remove(_ run: SIPCallRun) {
        runs = runs.filter { $0.value !== run }
        endedCount += 1
    }

    /// Ends all calls, and takes no more.
    func close() async {
        isClosed = true
        for run in runs.values { await run.hangUp() }
    }
}
