import CMeasure
import CallCore
import EngineBenchmarks
import MediaEngine

/// Pushes of calls and their INVITEs, to a phone with a call screen that answers before the INVITE is here.
enum PushedCalls {
    private static let count = 100

    static func measure(_: Options) async throws -> [Figure] {
        var cards = CallEngineConfiguration()
        cards.cardBindings.callPlayback = CardBinding("null")
        cards.cardBindings.callCapture = CardBinding("null")
        let engines = [try CallEngine(), try CallEngine(cards)]
        var configuration = PhoneConfiguration()
        configuration.local = .loopback(port: 0)
        let screen = AnsweringScreen()
        let caller = try await Phone(engines[0], configuration)
        let called = try await Phone(engines[1], configuration, provider: screen)
        var (reports, answers): ([Double], [Double]) = ([], [])
        for number in 0..<count {
            let pushed = measure_now()
            await called.receive(PushPayload())
            guard case .shown(let call, let shown) = await screen.next() else { throw wrong("the push was not shown") }
            reports.append(Double(shown - pushed) / 1e6)
            await called.perform(ProviderAction(id: UInt64(number), call, .answer))
            guard case .fulfilled = await screen.next() else { throw wrong("the action was not fulfilled") }
            let start = measure_now()
            let out = try await caller.call("sip:\(called.localAddress)") { ($0.source, $0.sink) = (.silence, .none) }
            try await out.answered()
            answers.append(Double(measure_now() - start) / 1e6)
            await out.hangUp()
            guard case .ended = await screen.next() else { throw wrong("the end was not told") }
        }
        for phone in [caller, called] { await phone.close() }
        for engine in engines { await engine.shutDown() }
        return figures("pushes: of a call, until reported", reports, most: 1)
            + figures("pushes: call begun to 200, answered before, both sides", answers, most: 5)
    }

    private static func figures(_ name: String, _ times: [Double], most: Double) -> [Figure] {
        let times = times.sorted()
        return [
            Figure("\(name), p50", times[times.count / 2], "ms", .atMost(most), note: "\(times.count) calls"),
            Figure("\(name), longest", times[times.count - 1], "ms"),
        ]
    }

    private static func wrong(_ what: String) -> Options.Wrong { Options.Wrong(description: what) }
}

/// Keeps what it is told, with the times.
private final class AnsweringScreen: CallProvider {
    enum Report {
        case shown(CallUUID, Int64)
        case fulfilled
        case failed
        case ended
    }

    private let reports: AsyncStream<Report>
    private let continuation: AsyncStream<Report>.Continuation

    init() { (reports, continuation) = AsyncStream.makeStream() }

    func next() async -> Report? { await reports.first { _ in true } }

    func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async throws(CallRefusal) {
        continuation.yield(.shown(call, measure_now()))
    }

    func performed(_ action: ProviderAction, _ outcome: ActionOutcome) async {
        continuation.yield(outcome == .fulfilled ? .fulfilled : .failed)
    }

    func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) async { continuation.yield(.ended) }
    func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) async {}
    func reportUpdate(_ call: CallUUID, _ update: CallUpdate) async {}
}
