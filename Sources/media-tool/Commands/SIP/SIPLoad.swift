import CallBasics
import CallCore
internal import Glibc
import MediaEngine
import SDP
import SIP
import SIPTransport
import Synchronization

/// Many calls or registrations of one agent.
actor SIPLoad {
    private let party: SIPParty
    private let pace: LoadPace
    private let target: SIPURI?
    private var figures = LoadFigures()
    /// Those that are registered, to be taken away at the end.
    private var accounts: [AccountHandle] = []
    private let heard = EventBasket()
    private var listening: Task<Void, Never>?

    init(_ party: SIPParty, _ pace: LoadPace, _ target: SIPURI?) {
        (self.party, self.pace, self.target) = (party, pace, target)
    }

    /// Sound that nobody sends, and that is to be sent to nobody.
    static func session(at host: String) -> SessionConfiguration {
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        return SessionConfiguration(address: host, media: [MediaConfiguration(port: 9, formats: [format])])
    }

    /// Registers the account that calls.
    func registerFirst() async throws {
        guard party.account != nil else { return }
        var iterator = party.endpoint.events.makeAsyncIterator()
        try await party.register(&iterator, SIPTeller(isJSON: true, hasEvents: false))
    }

    func calls(_ headers: [(name: String, value: String)]) async throws -> LoadFigures {
        guard let target else { return figures }
        let (account, session) = (party.account, Self.session(at: party.local.host))
        var made = UserAgent.CallWishes(session: session, account: account)
        made.headers = headers
        let wishes = made
        var course = LoadCourse<CallHandle>(pace, start: MonotonicClock.current)
        let start = MonotonicClock.current
        try await run { events in
            let now = MonotonicClock.current
            for event in events { figures.note(event, &course, at: now) }
            let (count, over) = (course.takeDue(at: now), course.takeTalkedOut(at: now))
            figures.attempted += count
            let begun = try await party.endpoint.perform { agent, now in
                for handle in over { agent.hangUp(handle, at: now) }
                return try (0..<count).map { _ in try agent.call(target, wishes, at: now) }
            }
            for handle in begun { course.begin(handle, at: now) }
            return course.isOver
        }
        let total = await finished(start)
        let left = course.names
        await party.endpoint.perform { agent, now in for handle in left { agent.hangUp(handle, at: now) } }
        return total
    }

    func registrations(_ options: SIPOptions, after formerCount: Int) async throws -> LoadFigures {
        var course = LoadCourse<AccountHandle>(pace, start: MonotonicClock.current)
        let start = MonotonicClock.current
        try await run { events in
            let now = MonotonicClock.current
            for event in events {
                if let handle = figures.noteRegistration(event, &course, at: now) { accounts.append(handle) }
            }
            for _ in 0..<course.takeDue(at: now) {
                let made = try options.account(number: formerCount + figures.attempted + 1)
                figures.attempted += 1
                let handle = try await party.endpoint.perform { agent, now in
                    let handle = agent.addAccount(made)
                    try agent.register(handle, at: now)
                    return handle
                }
                course.begin(handle, at: now)
            }
            return course.isOver
        }
        return await finished(start)
    }

    /// Lets a millisecond go by, again and again, with what the agent told in it, until `step` says that all is over.
    private func run(_ step: ([AgentEvent]) async throws -> Bool) async throws {
        listen()
        while try await !step(heard.take()) {
            guard await Interruption.wait(.milliseconds(1)) else { return }
            // Another part of the load has failed.
            try Task.checkCancellation()
        }
    }

    /// Begins to take what the agent tells, which has one listener.
    private func listen() {
        guard listening == nil else { return }
        listening = Task { [party, heard] in for await event in party.endpoint.events { heard.add(event) } }
    }

    private func finished(_ start: MediaTime) async -> LoadFigures {
        figures.elapsed = MonotonicClock.current - start
        figures.retransmissions = await party.counts().repeats
        return figures
    }

    /// Takes the bindings away, at the rate, and closes the sockets; ends before that at the second Ctrl-C.
    func close() async {
        var waiting = Set(accounts)
        var course = LoadCourse<AccountHandle>(pace.with(count: accounts.count), start: MonotonicClock.current)
        var (next, end) = (0, MonotonicClock.current + .seconds(32))
        while !waiting.isEmpty, MonotonicClock.current < end, !Task.isCancelled {
            let due = course.takeDue(at: MonotonicClock.current)
            if due > 0 { end = MonotonicClock.current + .seconds(32) }
            let leaving = accounts[next..<next + due]
            next += due
            await party.endpoint.perform { agent, now in for handle in leaving { agent.unregister(handle, at: now) } }
            for case .registration(let handle, let state, _) in heard.take() where state == .cleared || state == .failed
            {
                waiting.remove(handle)
            }
            try? await Task.sleep(for: .milliseconds(1))
        }
        await party.close()
        await listening?.value
    }
}

/// What the agent told since the last look.
private final class EventBasket: Sendable {
    private let events = Mutex<[AgentEvent]>([])

    func add(_ event: AgentEvent) { events.withLock { $0.append(event) } }

    func take() -> [AgentEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}

/// What the process has taken so far.
struct ProcessUsage: Sendable {
    let cpuSeconds: Double
    /// The most memory that it had at once.
    let peakMiB: Double

    init() {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
        cpuSeconds = ((seconds(usage.ru_utime) + seconds(usage.ru_stime)) * 1000).rounded() / 1000
        peakMiB = (Double(usage.ru_maxrss) / 1024 * 10).rounded() / 10
    }
}
