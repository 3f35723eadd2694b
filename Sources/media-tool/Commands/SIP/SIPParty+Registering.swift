import CallBasics
internal import Glibc
import MediaEngine
import SIP
import SIPTransport

extension SIPParty {
    /// Registers the account, tells that, and waits for what comes of it.
    ///
    /// - Throws: `ToolFailure` when it is refused
    func register(_ iterator: inout AsyncStream<AgentEvent>.Iterator, _ teller: SIPTeller) async throws {
        guard var course = try await beginRegistering(teller) else { return }
        while let event = await iterator.next() {
            switch await course.receive(event) {
            case .ok?: return
            case .failed(let failure, _)?: throw failure
            default: break
            }
        }
    }

    /// Registers the account: what comes of that, the answer tells from the events that follow; nil without an account.
    func beginRegistering(_ teller: SIPTeller) async throws -> RegistrationCourse? {
        guard let account, let course = registrationCourse(teller) else { return nil }
        try await endpoint.perform { agent, now in try agent.register(account, at: now) }
        return course
    }
}

extension ToolFailure {
    /// What a command says that has ended before its registrar has answered.
    static var unregistered: ToolFailure {
        ToolFailure("The account was not registered before the end. Give it more time.")
    }
}

/// What becomes of the registration of an account, told as it happens.
struct RegistrationCourse {
    /// What an event came to.
    enum Outcome {
        case ok
        /// It is not registered, and why; it is tried again in a while, unless only another name or password can mend that.
        case failed(ToolFailure, isFinal: Bool)
        /// The binding was taken away.
        case cleared
        /// There is no network.
        case waiting
    }

    /// How the registration stands, and what the server sees of this side.
    typealias Status = (registration: Registration?, publicAddress: SocketAddress?, now: MediaTime)

    private let address: String
    private let local: SocketAddress
    private let teller: SIPTeller
    private let status: () async -> Status
    private let explain: (RequestFailure) async -> ToolFailure
    private let sinceStart: () -> Duration
    private var start: MediaTime?
    /// REGISTERs that were sent before the present attempt.
    private var formerCount = 0
    private var isRunning = true
    private var target: Target?
    private var failure: RequestFailure?

    /// The registration of an address at an own one.
    ///
    /// `status` asks the agent, `explain` says what a failure comes from, and
    /// `sinceStart` for how long the process has run.
    init(
        of address: String,
        at local: SocketAddress,
        _ teller: SIPTeller,
        status: @escaping () async -> Status,
        explain: @escaping (RequestFailure) async -> ToolFailure,
        sinceStart: @escaping () -> Duration
    ) {
        (self.address, self.local, self.teller) = (address, local, teller)
        (self.status, self.explain, self.sinceStart) = (status, explain, sinceStart)
    }

    /// Takes what the agent tells; nil when that changes nothing.
    mutating func receive(_ event: AgentEvent) async -> Outcome? {
        switch event {
        case .targets(_, let targets) where isRunning: tellTarget(targets.first)
        case .registrationFailed(_, let cause): failure = cause
        case .flowEnded(_, let flow, let end):
            teller.tell(
                "flow",
                [
                    ("state", "failed"), ("why", .string(end.word)),
                    ("target", .string(SIPParty.text(flow.transport, flow.remote))),
                ],
                text: "The way to \(SIPParty.text(flow.transport, flow.remote)) is gone: \(end.word)."
            )
        case .registration(_, let state, let reason): return await note(state, reason)
        default: break
        }
        return nil
    }

    private mutating func tellTarget(_ next: Target?) {
        guard let next, next != target else { return }
        target = next
        let transport = "\(next.transport.name)".lowercased()
        teller.tell(
            "registering",
            [
                ("account", .string(address)), ("target", .string("\(next.address)")),
                ("transport", .string(transport)), ("local", .string("\(local)")),
                ("sinceStartMs", .number(sinceStart().roundedMilliseconds)),
            ],
            text: "Registering \(address) at \(transport) \(next.address)."
        )
    }

    private mutating func note(_ state: Registration.State, _ reason: Registration.Reason) async -> Outcome? {
        switch state {
        case .progress, .refreshing: (start, isRunning, failure) = (await status().now, true, nil)
        case .ok:
            isRunning = false
            await tellRegistered()
            return .ok
        case .failed:
            (isRunning, target) = (false, nil)
            let failure = await words(reason)
            await tell("failed", reason, failure.description)
            return .failed(failure, isFinal: reason.isFinal)
        case .none:
            await tell("none", reason, "There is no network.")
            return .waiting
        case .cleared:
            guard reason.isRefusal else {
                teller.tell("unregistered", text: "Not registered any more.")
                return .cleared
            }
            let failure = await words(reason)
            await tell("failed", reason, failure.description)
            return .failed(failure, isFinal: true)
        }
        return nil
    }

    private mutating func tell(_ state: String, _ reason: Registration.Reason, _ text: String) async {
        let (registration, _, now) = await status()
        formerCount = registration?.requestCount ?? 0
        let (phrase, wait) = (registration?.phrase, registration?.deadline.map { $0 - now })
        let code: Int? = if case .status(let code) = reason { code } else { nil }
        teller.tell(
            "registration",
            [
                ("state", .string(state)), ("code", code.map { .integer($0) } ?? .null),
                ("phrase", JSONValue(code == nil ? nil : phrase)), ("reason", .string(reason.word)),
                (
                    "retryInSeconds",
                    reason.isFinal ? .null : wait.map { .integer(Int($0.roundedSeconds.rounded())) } ?? .null
                ),
                ("message", .string(text)),
            ],
            text: text
        )
    }

    /// Why it failed, with the remedy.
    private func words(_ reason: Registration.Reason) async -> ToolFailure {
        if case .failure = reason, let failure { return await explain(failure) }
        var told = ToolFailure(reason.sentence)
        if case .status(let code) = reason { (told.status, told.code) = (SIPStatusWord.of(code), code) }
        return told
    }

    private mutating func tellRegistered() async {
        let (registration, seen, now) = await status()
        let time = now - (start ?? now)
        let count = registration?.requestCount ?? 0
        defer { formerCount = count }
        let binding = registration?.binding
        let seconds = Int(binding?.granted ?? 0)
        let gruu = binding?.publicGRUU.map { JSONValue.string($0.bytes.text) } ?? .null
        let refresh = registration?.deadline.map { JSONValue.integer(Int(($0 - now).roundedSeconds)) } ?? .null
        teller.tell(
            "registered",
            [
                ("account", .string(address)), ("expires", .integer(seconds)), ("refreshAt", refresh),
                ("contact", JSONValue(registration?.configuration.contact.bytes.text)),
                ("publicAddress", seen.map { .string("\($0)") } ?? .null), ("gruu", gruu),
                ("serviceRoute", .array((binding?.serviceRoutes ?? []).map { .string($0.uri.bytes.text) })),
                ("pushServed", binding?.isPushServed.map { .bool($0) } ?? .null),
                ("pushRegistrationSeconds", binding?.wakeSeconds.map { .integer(Int($0)) } ?? .null),
                ("roundTripMs", .number(time.roundedMilliseconds)),
                ("attempts", .integer(max(count - formerCount, 1))),
            ],
            text: "Registered for \(seconds) s" + (seen.map { ", seen as \($0)" } ?? "") + "."
                + (binding?.isPushServed == false ? " The server sends no pushes of this service." : "")
        )
    }
}

extension SIPParty {
    /// What becomes of the registration of the account; nil without one.
    func registrationCourse(_ teller: SIPTeller) -> RegistrationCourse? {
        guard let account, let address else { return nil }
        return RegistrationCourse(
            of: address,
            at: local,
            teller,
            status: {
                await endpoint.perform { agent, now in
                    (agent.registration(of: account), agent.publicAddress(of: account), now)
                }
            },
            explain: { await failure($0, "the registrar") },
            sinceStart: { ProcessStart.elapsed }
        )
    }
}

extension Registration.Reason {
    /// Whether only another password or name can mend it; it is not tried again soon.
    fileprivate var isFinal: Bool {
        switch self {
        case .status(401), .status(403), .status(404), .status(407), .notListed, .notWritable: true
        default: false
        }
    }

    /// What it means, with the remedy.
    fileprivate var sentence: String {
        switch self {
        case .status(401), .status(407):
            "The server wants another password (\(self == .status(401) ? 401 : 407)). Give --password-file, and see --user."
        case .status(403): "The server forbids the registration (403). See --account and --user."
        case .status(404): "The server does not know the account (404). See --account."
        case .status(let code): "The server refused the registration: \(code)."
        case .failure: "The registrar did not answer. See --registrar."
        case .notListed: "The server lists other phones and not this one. See --account."
        default: "The account cannot be registered. See --account."
        }
    }

    /// Whether a server, or the lack of one, decided it.
    fileprivate var isRefusal: Bool {
        switch self {
        case .status, .failure: true
        default: false
        }
    }

    /// As lines name it.
    fileprivate var word: String {
        switch self {
        case .status(401), .status(407): "unauthorized"
        case .status(403): "forbidden"
        case .status(404): "notFound"
        case .status(423): "intervalTooBrief"
        case .status(503): "unavailable"
        case .status: "rejected"
        case .failure(.timeout), .status(408): "timeout"
        case .failure: "unreachable"
        case .notListed: "notListed"
        case .notWritable: "notWritable"
        case .networkDown: "networkDown"
        case .networkUp: "networkUp"
        case .wish: "wish"
        case .time: "time"
        case .accepted: "accepted"
        }
    }
}

extension FlowEnd {
    /// As lines name it.
    var word: String {
        switch self {
        case .refused: "refused"
        case .unopened: "unopened"
        case .closed: "closed"
        case .unreachable: "unreachable"
        case .addressGone: "addressGone"
        case .noPong: "pong"
        case .unanswered: "unanswered"
        case .idle: "idle"
        case .slow: "slow"
        case .faulty: "faulty"
        case .overloaded: "overloaded"
        }
    }
}

/// When the process began.
enum ProcessStart {
    /// For how long it has run; the kernel counts its start in steps of 10 ms.
    static var elapsed: Duration {
        var now = timespec()
        clock_gettime(CLOCK_BOOTTIME, &now)
        guard let file = fopen("/proc/self/stat", "r") else { return .zero }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 1024)
        let count = fread(&text, 1, text.count, file)
        // The name in parentheses may hold anything; the start is the 20th field behind it.
        let all = String(decoding: text[..<count], as: UTF8.self)
        guard let end = all.lastIndex(of: ")") else { return .zero }
        let fields = all[all.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let ticks = Int64(fields[19]) else { return .zero }
        let start = Duration.milliseconds(ticks * 1000 / Int64(max(sysconf(CInt(_SC_CLK_TCK)), 1)))
        return max(.seconds(now.tv_sec) + .nanoseconds(now.tv_nsec) - start, .zero)
    }
}
