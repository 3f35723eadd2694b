import ArgumentParser
import CallBasics
import MediaEngine
import SIP

/// Calls, or registers, by rate.
struct SIPLoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Makes many calls or registrations at a rate, and says how fast they were answered.",
        discussion: """
            Calls have a description of sound, and no sound: nothing is sent to where the other side wants it. Each ends --talk \
            seconds after its answer. One processor does all of it; with --cores several share it, each with a port of its own.

            With --register, the accounts are those of --account with a number behind the user: alice1, alice2 and on, all with \
            the same password. Their bindings are taken away at the end.

            With --virtual, two agents of the tool call each other in virtual time, or one registers at a server of the tool: the \
            same seed gives the same bytes.

            It fails when one attempt was not answered well. Load only what is yours.

            EXAMPLES
              media-tool sip load --to sip:127.0.0.1:5060 --rate 50 --calls 1000
              media-tool sip load --to sip:bob@example.test --account sip:alice@example.test --no-register --talk 5 --json
              media-tool sip load --register --users 500 --rate 100 --account sip:alice@example.test --registrar sip:127.0.0.1
              media-tool sip load --virtual --seed 7 --calls 200 --rate 100 --json
            """
    )

    @Option(help: ArgumentHelp("Whom to call.", valueName: "uri"))
    var to: String?

    @Flag(help: "Register instead of calling.")
    var register = false

    @Option(help: ArgumentHelp("Attempts a second, 0.1 to 100000.", valueName: "n"))
    var rate: Double = 10

    @Option(help: ArgumentHelp("Calls in all, 1 to 1000000. Default: 100.", valueName: "n"))
    var calls: Int?

    @Option(help: ArgumentHelp("Calls at once at most, 1 to 60000. Default: 1000.", valueName: "n"))
    var concurrent: Int?

    @Option(help: ArgumentHelp("How long each call lasts. Default: 0.", valueName: "s"))
    var talk: Double?

    @Option(help: ArgumentHelp("Accounts with --register, 1 to 60000. Default: 100.", valueName: "n"))
    var users: Int?

    @Option(help: ArgumentHelp("How many processors share it, 1 to 64. Default: 1.", valueName: "n"))
    var cores: Int?

    @Flag(help: "In virtual time, without a socket.")
    var virtual = false

    @Option(help: "What all of --virtual is drawn by.")
    var seed: UInt64?

    @OptionGroup var sip: SIPOptions
    @OptionGroup var common: CommonOptions

    func validate() throws {
        try Quantity.check("--rate", rate, in: 0.1...100_000, "a second")
        try Quantity.check("--calls", calls, in: 1...1_000_000, "calls")
        try Quantity.check("--concurrent", concurrent, in: 1...60_000, "calls")
        try Quantity.check("--talk", talk, in: 0...86_400, "s")
        try Quantity.check("--users", users, in: 1...60_000, "accounts")
        if let to { _ = try SIPOptions.uri(to, "--to") }
        try Quantity.check("--cores", cores, in: 1...64)
        let kinds = [("--to", to != nil), ("--register", register), ("--virtual", virtual && !register)].filter(\.1)
        guard kinds.count == 1 else {
            throw ValidationError("Say what to do: one of '--to', '--register' and '--virtual'.")
        }
        guard cores ?? 1 == 1 || sip.local?.address.port ?? 0 == 0 else {
            throw ValidationError("With '--cores' each has a port of its own. Leave the port out of '--local'.")
        }
        let ofCalls = [("--calls", calls != nil), ("--concurrent", concurrent != nil), ("--talk", talk != nil)]
        if register, let wrong = ofCalls.first(where: \.1)?.0 {
            throw ValidationError("'\(wrong)' is about calls. Leave it out, or '--register'.")
        }
        guard register || users == nil else {
            throw ValidationError("'--users' is about registrations. Give '--register', or leave it out.")
        }
        guard sip.group == nil else {
            throw ValidationError("'--group' is for one phone. Give '--account' and what belongs to it, or nothing.")
        }
        guard !register || virtual || sip.account != nil else {
            throw ValidationError("'--register' needs somebody to register. Give '--account'.")
        }
        guard !register || sip.own.passwordFile != "-" else {
            throw ValidationError(
                "Standard input has one password once. Give '--password-file' a file, or say it by MEDIA_TOOL_SIP_PASSWORD."
            )
        }
        try sip.check(virtual: virtual, seed: seed, [("--account", sip.account != nil), ("--cores", cores != nil)])
        if cores ?? 1 > 1 {
            let single = [("--sip-trace", sip.sipTrace != nil), ("--password-file -", sip.own.passwordFile == "-")]
            if let wrong = single.first(where: \.1)?.0 {
                throw ValidationError("'\(wrong)' is for one processor. Leave out '--cores', or it.")
            }
        }
    }

    func run() async throws {
        common.startLogging()
        Interruption.catchSignals()
        let figures: LoadFigures
        if virtual {
            let load = VirtualLoad(pace: pace, seed: seed ?? 1)
            figures = try register ? load.registrations() : load.calls()
        } else {
            figures = try await runLive()
        }
        common.show(figures.json, text: figures.text)
        guard figures.connected == figures.attempted else {
            var failure = ToolFailure(
                "\(figures.attempted - figures.connected) of \(figures.attempted) attempts failed. See how, and try a lower --rate."
            )
            failure.isReported = true
            throw failure
        }
    }

    private var pace: LoadPace {
        LoadPace(
            count: register ? users ?? 100 : calls ?? 100,
            rate: rate,
            concurrent: register ? 60_000 : concurrent ?? 1000,
            talk: .seconds(fraction: talk ?? 0)
        )
    }

    private func runLive() async throws -> LoadFigures {
        let parts = pace.split(over: cores ?? 1)
        var figures = try await withThrowingTaskGroup(of: LoadFigures.self) { group in
            for part in parts { group.addTask { try await runLive(part.pace, after: part.formerCount) } }
            var all = LoadFigures()
            for try await figures in group { all.add(figures) }
            return all
        }
        figures.usage = ProcessUsage()
        return figures
    }

    /// A part of the load, on a processor of its own.
    private func runLive(_ pace: LoadPace, after formerCount: Int) async throws -> LoadFigures {
        let target = try to.map { try SIPOptions.uri($0, "--to") }
        let party = try await sip.open(towards: target) { agent in
            if sip.timeout == nil { agent.callPatience = .seconds(32) }
        }
        let load = SIPLoad(party, pace, target)
        let figures: LoadFigures
        do {
            if target != nil, !sip.noRegister { try await load.registerFirst() }
            let headers = try sip.headers()
            figures = try await register ? load.registrations(sip, after: formerCount) : load.calls(headers)
        } catch {
            await load.close()
            throw error
        }
        await load.close()
        return figures
    }
}

/// How many are to be begun, and when.
struct LoadPace: Sendable {
    let count: Int
    /// A second.
    let rate: Double
    let concurrent: Int
    let talk: Duration

    func with(count: Int) -> LoadPace { LoadPace(count: count, rate: rate, concurrent: .max, talk: talk) }

    /// As many parts, and what those before each have to do.
    func split(over number: Int) -> [(pace: LoadPace, formerCount: Int)] {
        let parts = min(number, count, concurrent)
        /// What the part at `index` has of a whole.
        func share(_ whole: Int, _ index: Int) -> Range<Int> { whole * index / parts..<whole * (index + 1) / parts }
        return (0..<parts).map { index in
            let own = share(count, index)
            let concurrent = share(concurrent, index).count
            let part = LoadPace(count: own.count, rate: rate / Double(parts), concurrent: concurrent, talk: talk)
            return (part, own.lowerBound)
        }
    }
}

/// What has been begun and waits.
struct LoadCourse<Name: Hashable & Sendable>: Sendable {
    private let pace: LoadPace
    private let start: MediaTime
    private var begunCount = 0
    private var starts: [Name: MediaTime] = [:]
    /// Those that are answered, in the order in which they are to end.
    private var talking: ArraySlice<(end: MediaTime, name: Name)> = []

    init(_ pace: LoadPace, start: MediaTime) { (self.pace, self.start) = (pace, start) }

    var isOver: Bool { begunCount == pace.count && starts.isEmpty }

    /// How many are to be begun now.
    mutating func takeDue(at now: MediaTime) -> Int {
        let due = Int((now - start).milliseconds / 1000 * pace.rate) + 1
        let count = min(min(due, pace.count) - begunCount, pace.concurrent - starts.count)
        begunCount += max(count, 0)
        return max(count, 0)
    }

    mutating func begin(_ name: Name, at now: MediaTime) { starts[name] = now }

    /// How long it took to be answered.
    mutating func answer(_ name: Name, at now: MediaTime) -> Duration? {
        guard let start = starts[name] else { return nil }
        talking.append((now + pace.talk, name))
        return now - start
    }

    /// Those that are under way.
    var names: [Name] { Array(starts.keys) }

    /// Whether it was under way.
    mutating func end(_ name: Name) -> Bool { starts.removeValue(forKey: name) != nil }

    /// Those whose talk is over.
    mutating func takeTalkedOut(at now: MediaTime) -> [Name] {
        let over = talking.prefix { $0.end <= now }
        talking = talking.dropFirst(over.count)
        return over.map(\.name)
    }
}

/// What a load came to.
struct LoadFigures: Sendable {
    var attempted = 0
    var connected = 0
    var rejected = 0
    var timedOut = 0
    var failed = 0
    var retransmissions = 0
    /// In ms.
    var setups: [Double] = []
    var elapsed = Duration.zero
    /// What the process took; nil in virtual time.
    var usage: ProcessUsage?

    /// Takes what the agent tells of own registrations.
    ///
    /// - Returns: The account that is registered now; nil when none is, that was not.
    mutating func noteRegistration(_ event: AgentEvent, _ course: inout LoadCourse<AccountHandle>, at now: MediaTime)
        -> AccountHandle?
    {
        guard case .registration(let handle, let state, let reason) = event else { return nil }
        switch state {
        case .ok:
            guard let time = course.answer(handle, at: now), course.end(handle) else { return nil }
            connected += 1
            setups.append(time.milliseconds)
            return handle
        case .failed:
            guard course.end(handle) else { return nil }
            switch reason {
            case .status: rejected += 1
            case .failure: timedOut += 1
            default: failed += 1
            }
        case .none, .progress, .refreshing, .cleared: break
        }
        return nil
    }

    /// Takes what the agent tells of own calls.
    mutating func note(_ event: AgentEvent, _ course: inout LoadCourse<CallHandle>, at now: MediaTime) {
        switch event {
        case .established(let handle):
            guard let setup = course.answer(handle, at: now) else { return }
            connected += 1
            setups.append(setup.milliseconds)
        case .ended(let handle, let end):
            guard course.end(handle) else { return }
            switch end.cause {
            case .refused: rejected += 1
            case .timeout: timedOut += 1
            case .failed(.unanswered(.timeout, _)): timedOut += 1
            case .hungUp, .replaced: break
            case .cancelled, .failed, .unacknowledged, .expired, .unacceptable: failed += 1
            }
        default: break
        }
    }

    /// Takes what another part came to.
    mutating func add(_ other: LoadFigures) {
        attempted += other.attempted
        connected += other.connected
        rejected += other.rejected
        timedOut += other.timedOut
        failed += other.failed
        retransmissions += other.retransmissions
        setups += other.setups
        elapsed = max(elapsed, other.elapsed)
    }

    private var ratePerSecond: Double {
        let seconds = elapsed.milliseconds / 1000
        return seconds > 0 ? (Double(connected) / seconds * 10).rounded() / 10 : 0
    }

    /// The setup that so many of 100 did not pass, in ms.
    private func percentile(_ percent: Double, of sorted: [Double]) -> Double? {
        guard !sorted.isEmpty else { return nil }
        let rank = Int((percent / 100 * Double(sorted.count)).rounded(.up))
        return (sorted[min(max(rank, 1), sorted.count) - 1] * 100).rounded() / 100
    }

    private var percentiles: [(String, Double?)] {
        let sorted = setups.sorted()
        return [
            ("p50", percentile(50, of: sorted)), ("p95", percentile(95, of: sorted)),
            ("p99", percentile(99, of: sorted)), ("max", percentile(100, of: sorted)),
        ]
    }

    var json: JSONValue {
        [
            "attempted": .integer(attempted), "connected": .integer(connected), "rejected": .integer(rejected),
            "timedOut": .integer(timedOut), "failed": .integer(failed), "retransmissions": .integer(retransmissions),
            "setupMs": .object(percentiles.map { ($0.0, $0.1.map { .number($0) } ?? .null) }),
            "ratePerSecond": .number(ratePerSecond),
            "cpuSeconds": usage.map { .number($0.cpuSeconds) } ?? .null,
            "peakMiB": usage.map { .number($0.peakMiB) } ?? .null,
        ]
    }

    var text: String {
        let times = percentiles.map { "\($0.0) \($0.1.map { "\($0)" } ?? "none")" }.joined(separator: ", ")
        var lines = [
            "\(connected) of \(attempted) answered, \(rejected) rejected, \(timedOut) timed out, \(failed) failed",
            "\(ratePerSecond) a second, \(English.count(retransmissions, "retransmission"))",
            "Until the answer, in ms: \(times)",
        ]
        if let usage { lines.append("\(usage.cpuSeconds) s of a processor, at most \(usage.peakMiB) MiB") }
        return lines.joined(separator: "\n") + "\n"
    }
}
