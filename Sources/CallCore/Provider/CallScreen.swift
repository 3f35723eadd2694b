package import CallBasics
internal import SDP
package import SIP
internal import SIPTransport
internal import Synchronization

/// Whose calls a screen shows: a phone, or what stands for one.
package protocol ScreenedCalls: AnyObject, Sendable {
    /// Does what the screen wants, one action after the other: all of them, or none when one does not fit.
    func perform(_ transaction: [ProviderAction]) async
    /// The sound is its own, as the system says.
    func activateAudio() async
    /// The sound is somebody else's.
    func deactivateAudio() async
    /// All calls end at once, and the screen is told nothing more of them.
    func resetCalls() async
    /// Takes a push of a call, and gives what the screen knows the call by.
    func receive(_ push: PushPayload) async -> CallUUID?
    /// The screen shows a call, or not.
    func note(_ uuid: CallUUID, _ refusal: CallRefusal?) async
    /// It is time for the desk.
    func handleDeskTimeout() async
}

extension Phone: ScreenedCalls {}

/// The way to a phone's call screen: what the desk reports goes there in order, and its verdicts come back.
///
/// Thread: all but `close` where the phone is, on its event loop.
package final class CallScreen: @unchecked Sendable {
    /// Reports that may wait for a screen that is slow.
    private static let reportLimit = 4096

    package var desk: CallDesk
    /// Holds that wait for the other side.
    private var holding: [CallHandle: (isHeld: Bool, ticket: CallDesk.Ticket)] = [:]
    private let provider: any CallProvider
    /// What waits to be told, and how many resets were before it.
    private typealias Item = (report: CallDesk.Report, resetCount: Int)
    private let reports: AsyncStream<Item>
    private let continuation: AsyncStream<Item>.Continuation
    private let resets = Resets()
    private weak var phone: (any ScreenedCalls)?
    private var alarm = PhoneAlarm()

    /// How often all calls were ended at once: what was to be told before is not told any more.
    private final class Resets: Sendable { let count = Atomic(0) }

    package init(_ provider: any CallProvider, seed: UInt64) {
        (self.provider, desk) = (provider, CallDesk(seed: seed))
        (reports, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.reportLimit))
    }

    /// Begins to tell the screen; verdicts go to `phone`.
    package func open(for phone: any ScreenedCalls) {
        self.phone = phone
        let (provider, reports, resets) = (provider, reports, resets)
        Task { [weak phone] in
            for await item in reports where item.resetCount == resets.count.load(ordering: .relaxed) {
                switch item.report {
                case .incoming(let uuid, let update):
                    var refusal: CallRefusal?
                    do throws(CallRefusal) { try await provider.reportIncoming(uuid, update) } catch { refusal = error }
                    await phone?.note(uuid, refusal)
                case .outgoing(let uuid, let update, let stage): await provider.reportOutgoing(uuid, update, stage)
                case .updated(let uuid, let update): await provider.reportUpdate(uuid, update)
                case .ended(let uuid, let reason): await provider.reportEnded(uuid, reason)
                case .performed(let action, let outcome): await provider.performed(action, outcome)
                }
            }
        }
    }

    /// Tells what the desk has decided, and has its orders obeyed.
    package func settle(_ obey: (CallDesk.Order) -> Void) {
        resets.count.store(desk.resetCount, ordering: .relaxed)
        while let output = desk.poll() {
            switch output {
            case .order(let order): obey(order)
            case .report(let report):
                if !tell(report), case .incoming(let uuid, _) = report { desk.note(uuid, .busy) }
            }
        }
        alarm.set(to: desk.deadline) { [weak phone] in await phone?.handleDeskTimeout() }
    }

    /// Holds a call, or resumes it; done when the other side has agreed, or refused.
    package func begin(_ ticket: CallDesk.Ticket, toHold handle: CallHandle, _ isHeld: Bool) {
        holding[handle] = (isHeld, ticket)
    }

    /// Another call takes the place of one: what waits for the other side is that call's.
    package func noteReplaced(_ former: CallHandle, by handle: CallHandle) {
        if let wish = holding.removeValue(forKey: former) { holding[handle] = wish }
    }

    /// Takes what a call comes to, but that it is answered.
    package func note(_ event: AgentEvent, of handle: CallHandle, at now: MediaTime) {
        switch event {
        case .agreed(_, let session):
            guard let isHeld = session.audio?.isHeldLocally else { return }
            desk.noteHeld(handle, isHeld)
            guard let wish = holding[handle], wish.isHeld == isHeld else { return }
            holding[handle] = nil
            desk.done(wish.ticket, isDone: true, at: now)
        case .changeRefused:
            if let wish = holding.removeValue(forKey: handle) { desk.done(wish.ticket, isDone: false, at: now) }
        case .ended(_, let end):
            holding[handle] = nil
            desk.noteEnd(handle, ReportedEnd(end))
        default: break
        }
    }

    /// Puts a report behind those that wait; false when too many do.
    package func tell(_ report: CallDesk.Report) -> Bool {
        if case .enqueued = continuation.yield((report, desk.resetCount)) { true } else { false }
    }

    /// Nothing more is told.
    package func close() { continuation.finish() }
}
