import CallCore
import MediaEngine

/// The call screen of `media-tool phone`: it numbers calls, prints what happens to them, rings, and does what lines say.
actor PhoneShell: CallProvider {
    struct Shown {
        let uuid: CallUUID
        var update: CallUpdate
        let isOutgoing: Bool
        /// Whether it was answered, by either side.
        var isTalking = false
        var isMuted = false
        /// What its other side asks for, and nobody has decided on.
        var transfer: PhoneTransfer?
    }

    private let engine: CallEngine
    let teller: SIPTeller
    private let country: String
    private(set) weak var phone: Phone?
    var calls: [Int: Shown] = [:]
    /// What calls are numbered, also those that are over: what they tell last comes after their end.
    private var numbers: [(uuid: CallUUID, number: Int)] = []
    private static let numbersKept = 256
    private var lastNumber = 0
    private var actionCount: UInt64 = 0
    /// What lines asked for, and when.
    private var asked: [UInt64: (id: Int?, start: MediaTime)] = [:]
    private var volume = 0.0
    private var hasAudio = false
    private var tone: CallProgressTone?

    init(_ engine: CallEngine, _ teller: SIPTeller, country: String) {
        (self.engine, self.teller, self.country) = (engine, teller, country)
    }

    func use(_ phone: Phone) { self.phone = phone }

    // MARK: What the phone reports

    func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async throws(CallRefusal) {
        let number = number(of: call)
        calls[number] = Shown(uuid: call, update: update, isOutgoing: false)
        let name = update.displayName.map { "\($0.printable) " } ?? ""
        let who = update.remote.isEmpty ? "Somebody" : "\(name)<\(update.remote.printable)>"
        tell(
            "incoming",
            number,
            [
                ("uuid", .string("\(call)")), ("from", .string(update.remote)),
                ("displayName", JSONValue(update.displayName)), ("hasVideo", .bool(update.hasVideo)),
                ("placeholder", .bool(update.isPlaceholder)),
            ],
            "\(who) calls\(update.isPlaceholder ? ", says a push" : ""). Say answer, or end."
        )
        await ring()
    }

    func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) async {
        let number = number(of: call)
        if calls[number] == nil { calls[number] = Shown(uuid: call, update: update, isOutgoing: true) }
        if stage == .connected { calls[number]?.isTalking = true }
        let text =
            stage == .connecting ? "Calling \(update.remote.printable)." : "\(update.remote.printable) has answered."
        tell(
            "outgoing",
            number,
            [("uuid", .string("\(call)")), ("to", .string(update.remote)), ("stage", .string(stage.rawValue))],
            text
        )
        await follow()
    }

    func reportUpdate(_ call: CallUUID, _ update: CallUpdate) async {
        guard let number = shown(call), let former = calls[number] else { return }
        let isHere = former.update.isPlaceholder && !update.isPlaceholder
        calls[number]?.update = update
        tell(
            "updated",
            number,
            [
                ("held", .bool(update.isHeld)), ("from", .string(update.remote)),
                ("displayName", JSONValue(update.displayName)), ("hasVideo", .bool(update.hasVideo)),
                ("grouped", .bool(update.isGrouped)),
            ],
            isHere ? "The call is here." : Self.text(of: update)
        )
        if former.isTalking { await set(volume, of: call) }
    }

    func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) async { await forget(call, reason.rawValue) }

    func performed(_ action: ProviderAction, _ outcome: ActionOutcome) async {
        var problem: (fault: String, text: String)?
        if case .failed(let fault) = outcome { problem = (fault.rawValue, Self.text(of: fault)) }
        if let order = asked.removeValue(forKey: action.id) { tell(order, problem) }
        guard outcome == .fulfilled, let number = shown(action.call) else { return }
        switch action.kind {
        case .answer:
            calls[number]?.isTalking = true
            await follow()
        case .end: await forget(action.call, "ended")
        case .setMuted(let isMuted):
            calls[number]?.isMuted = isMuted
            tell("muted", number, [("muted", .bool(isMuted))], isMuted ? "Muted." : "Not muted.")
        case .start, .setHeld, .setGroup, .playDTMF: break
        }
    }

    /// Tells what became of what a line asked for.
    private func tell(_ order: (id: Int?, start: MediaTime), _ problem: (fault: String, text: String)?) {
        let fault = JSONValue(problem?.fault)
        guard let id = order.id else {
            if let problem { teller.tell("failed", [("fault", fault)], text: problem.text) }
            return
        }
        teller.tell(
            "performed",
            [
                ("id", .integer(id)), ("result", .string(problem == nil ? "fulfilled" : "failed")), ("fault", fault),
                ("ms", .number((MonotonicClock.current - order.start).roundedMilliseconds)),
            ],
            text: problem?.text ?? "Done."
        )
    }

    private static func text(of update: CallUpdate) -> String {
        guard update.isGrouped else { return update.isHeld ? "Held." : "Not held." }
        return update.isHeld ? "In the conference, which goes on without you." : "In the conference."
    }

    private static func text(of fault: ActionOutcome.Fault) -> String {
        switch fault {
        case .unknownCall: "There is no such call any more."
        case .notNow: "That does not fit what the call is at."
        case .refused: "The call, or the other side, refused it."
        case .timedOut: "It took too long."
        case .transactionRefused: "Nothing was done."
        }
    }

    // MARK: What lines say

    /// Does what a line says; false to end.
    func obey(_ line: String) async -> Bool {
        do throws(PhoneOrderFault) {
            guard let order = try PhoneOrder(parsing: line) else { return true }
            try await obey(order)
            return order.kind != .quit
        } catch {
            var members: [(String, JSONValue)] = [("message", .string(error.message))]
            if let id = error.id { members.insert(("id", .integer(id)), at: 0) }
            teller.tell("refused", members, text: error.message)
            return true
        }
    }

    private func obey(_ order: PhoneOrder) async throws(PhoneOrderFault) {
        switch order.kind {
        case .start(let uri): await act(.start(to: uri), on: CallUUID(), order)
        case .answer:
            let ringing = try find(order, "rings") { !$0.isOutgoing && !$0.isTalking }
            await act(.answer, on: ringing.uuid, order)
        case .end:
            let call = try find(order, "is on") { _ in true }
            await act(.end, on: call.uuid, order)
        case .setHeld(let isHeld):
            let call = try find(order, isHeld ? "talks" : "is held") { $0.isTalking && $0.update.isHeld != isHeld }
            await act(.setHeld(isHeld), on: call.uuid, order)
        case .swap:
            let held = try find(order, "is held") { $0.isTalking && $0.update.isHeld }
            await act(.setHeld(false), on: held.uuid, order)
        case .setMuted(let isMuted):
            let call = try find(order, isMuted ? "is not muted" : "is muted") { $0.isMuted != isMuted }
            await act(.setMuted(isMuted), on: call.uuid, order)
            guard order.call == nil, call.update.isGrouped else { return }
            // In the conference nobody hears it then.
            for other in calls.values where other.update.isGrouped && other.uuid != call.uuid {
                await act(.setMuted(isMuted), on: other.uuid, nil)
            }
        case .playDTMF(let keys):
            let call = try find(order, "talks") { $0.isTalking && !$0.update.isHeld }
            await act(.playDTMF(keys), on: call.uuid, order)
        case .join(let other):
            let call = try find(order, "is to come into the conference") { $0.isTalking && !$0.update.isGrouped }
            let partner = try partner(of: call, other, order)
            await act(.setGroup(with: partner.uuid), on: call.uuid, order)
        case .split:
            let call = try find(order, "is in the conference", \.update.isGrouped)
            await act(.setGroup(with: nil), on: call.uuid, order)
        case .record(let path?):
            let call = try find(order, "talks", \.isTalking)
            await attempt(order) { try await Self.record(call, path, $0) }
        case .record(nil):
            let talking = calls.values.filter(\.isTalking).map(\.uuid)
            await attempt(order) { phone in
                try await phone.conference.stopRecording()
                for uuid in talking { try await phone.call(of: uuid)?.media?.stopRecording() }
            }
        case .transfer(let uri):
            let call = try find(order, "talks") { $0.isTalking }
            await attempt(order) { try await $0.call(of: call.uuid)?.transfer(to: uri) }
        case .handOver(let number):
            let call = try find(order, "talks") { $0.isTalking && $0.uuid != calls[number]?.uuid }
            guard let other = calls[number]?.uuid else {
                throw PhoneOrderFault("There is no call \(number). Say calls.", id: order.id)
            }
            await attempt(order) { phone in
                guard let partner = await phone.call(of: other) else { throw Self.isOver }
                try await phone.call(of: call.uuid)?.transfer(to: partner)
            }
        case .follow(let isWanted):
            let call = try find(order, "is to be transferred") { $0.transfer != nil }
            guard let transfer = call.transfer else {
                throw PhoneOrderFault("The other side asks for no transfer.", id: order.id)
            }
            if let number = shown(call.uuid) { calls[number]?.transfer = nil }
            await attempt(order) { phone in
                guard let call = await phone.call(of: call.uuid) else { throw Self.isOver }
                if isWanted { try await call.acceptTransfer(transfer) } else { await call.refuseTransfer(transfer) }
            }
        case .text(let text, let uri): await attempt(order) { try await $0.sendText(text, to: uri) }
        case .queue(let text, let uri): await attempt(order) { try await $0.queueText(text, to: uri) }
        case .calls: await attempt(order) { _ in await self.list() }
        case .log: await attempt(order) { await self.listPast($0) }
        case .devices:
            let names = engine.cards.cards.map(\.description.name)
            teller.tell("devices", [("names", JSONValue(names))], text: names.joined(separator: "\n"))
            await attempt(order) { _ in }
        case .device(let name):
            await attempt(order) { [engine] _ in
                for direction in [CardDirection.playback, .capture] { try await engine.setCard(named: name, direction) }
            }
        case .volume(let value):
            volume = value
            let talking = calls.values.filter(\.isTalking)
            await attempt(order) { _ in for call in talking { await self.set(value, of: call.uuid) } }
        case .push(let payload): await attempt(order) { await $0.receive(payload) }
        case .network(let isReachable): await attempt(order) { await $0.setNetworkReachable(isReachable) }
        case .help: teller.tell("help", [("text", .string(PhoneOrder.help))], text: PhoneOrder.help)
        case .quit: await attempt(order) { _ in }
        }
    }

    private static let isOver = PhoneError(.state, "The call is over.")

    /// The call that an order means: by its number, else the only one that it can mean, of several the last.
    private func find(_ order: PhoneOrder, _ what: String, _ fits: (Shown) -> Bool) throws(PhoneOrderFault) -> Shown {
        if let number = order.call {
            if let call = calls[number] { return call }
            throw PhoneOrderFault("There is no call \(number). Say calls.", id: order.id)
        }
        let fitting = calls.sorted { $0.key < $1.key }.map(\.value).filter(fits)
        let preferred = fitting.last { $0.isTalking && !$0.update.isHeld } ?? fitting.last
        if let preferred { return preferred }
        throw PhoneOrderFault("No call \(what). Say calls.", id: order.id)
    }

    /// Whom a call comes into the conference with.
    private func partner(of call: Shown, _ number: Int?, _ order: PhoneOrder) throws(PhoneOrderFault) -> Shown {
        if let number {
            if let partner = calls[number] { return partner }
            throw PhoneOrderFault("There is no call \(number). Say calls.", id: order.id)
        }
        let others = calls.sorted { $0.key < $1.key }.map(\.value).filter { $0.isTalking && $0.uuid != call.uuid }
        if let partner = others.last(where: \.update.isGrouped) ?? others.last { return partner }
        throw PhoneOrderFault("One call alone is no conference. Call somebody else.", id: order.id)
    }

    private static func record(_ call: Shown, _ path: String, _ phone: Phone) async throws {
        guard !call.update.isGrouped else { return try await phone.conference.startRecording(to: path) }
        guard let media = await phone.call(of: call.uuid)?.media else {
            throw PhoneError(.state, "No sound flows yet. Wait for the answer.")
        }
        try await media.startRecording(stereo: path)
    }

    /// Has the phone do something; what becomes of it is told when an order asked for it.
    private func act(_ kind: ProviderAction.Kind, on call: CallUUID, _ order: PhoneOrder?) async {
        actionCount += 1
        if let order { asked[actionCount] = (order.id, MonotonicClock.current) }
        await phone?.perform(ProviderAction(id: actionCount, call, kind))
    }

    /// Does what the screen has no action for.
    private func attempt(_ order: PhoneOrder, _ body: @escaping @Sendable (Phone) async throws -> Void) async {
        guard let phone else { return }
        let start = MonotonicClock.current
        var problem: (fault: String, text: String)?
        do { try await body(phone) } catch { problem = ("\(error)", "\(error)") }
        tell((order.id, start), problem)
    }

    private func set(_ volume: Double, of call: CallUUID) async {
        if let media = await phone?.call(of: call)?.media { media.volume = Decibels(volume) }
    }

    // MARK: Small things

    func number(of uuid: CallUUID) -> Int {
        if let known = numbers.last(where: { $0.uuid == uuid })?.number { return known }
        lastNumber += 1
        if numbers.count == Self.numbersKept { numbers.removeFirst() }
        numbers.append((uuid, lastNumber))
        return lastNumber
    }

    /// The number of a call that is on; nil of others.
    private func shown(_ uuid: CallUUID) -> Int? { calls.first { $0.value.uuid == uuid }?.key }

    private func forget(_ uuid: CallUUID, _ reason: String) async {
        guard let number = shown(uuid) else { return }
        calls[number] = nil
        // People hear it from the call itself, in a sentence.
        if teller.isJSON { tell("ended", number, [("uuid", .string("\(uuid)")), ("reason", .string(reason))], "") }
        await follow()
    }

    /// Gives calls the card while one talks or is called, and the ear its tones.
    private func follow() async {
        let isWanted = calls.values.contains { $0.isTalking || $0.isOutgoing }
        if isWanted != hasAudio {
            hasAudio = isWanted
            if isWanted { await phone?.activateAudio() } else { await phone?.deactivateAudio() }
            teller.tell(
                "audio",
                [("active", .bool(isWanted))],
                text: isWanted ? "The sound is on." : "The sound is off."
            )
        }
        await ring()
    }

    /// Rings while a call waits and nobody talks.
    private func ring() async {
        let isRinging = calls.values.contains { !$0.isOutgoing && !$0.isTalking }
        let isTalking = calls.values.contains { $0.isTalking && !$0.update.isHeld }
        let isCalling = calls.values.contains { $0.isOutgoing && !$0.isTalking }
        if isRinging { return await play(isTalking ? .callWaiting : .ringback) }
        if !isCalling || isTalking { await play(nil) }
    }

    func play(_ wanted: CallProgressTone?) async {
        guard wanted != tone else { return }
        tone = wanted
        // A phone that cannot ring is still one.
        guard let wanted else { return _ = try? await engine.stopRinging() }
        if let spec = try? ToneSpec(named: wanted.rawValue, country: country) { try? await engine.startRinging(spec) }
    }

    func tell(_ event: String, _ number: Int?, _ members: [(String, JSONValue)], _ text: String) {
        teller.tell(
            event,
            [("call", number.map { .integer($0) } ?? .null)] + members,
            text: number.map { "[\($0)] \(text)" } ?? text
        )
    }
}
