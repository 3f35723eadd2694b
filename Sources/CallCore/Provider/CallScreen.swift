internal import CallBasics
internal import SIP
internal import SIPTransport

/// The way to a phone's call screen: what the desk reports goes there in order, and its verdicts come back.
///
/// Thread: all but `close` on the event loop of the phone.
final class CallScreen: @unchecked Sendable {
    /// Reports that may wait for a screen that is slow.
    private static let reportLimit = 4096

    var desk: CallDesk
    /// Holds that wait for the other side.
    var holding: [CallHandle: (isHeld: Bool, ticket: CallDesk.Ticket)] = [:]
    private let provider: any CallProvider
    private let reports: AsyncStream<CallDesk.Report>
    private let continuation: AsyncStream<CallDesk.Report>.Continuation
    private weak var phone: Phone?
    private var alarm = PhoneAlarm()

    init(_ provider: any CallProvider, seed: UInt64) {
        (self.provider, desk) = (provider, CallDesk(seed: seed))
        (reports, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.reportLimit))
    }

    /// Begins to tell the screen; verdicts go to `phone`.
    func open(for phone: Phone) {
        self.phone = phone
        let (provider, reports) = (provider, reports)
        Task { [weak phone] in
            for await report in reports {
                switch report {
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

    /// Puts a report behind those that wait; false when too many do.
    func tell(_ report: CallDesk.Report) -> Bool {
        if case .enqueued = continuation.yield(report) { true } else { false }
    }

    /// Has the desk called at a time, and at no other.
    func wake(at time: MediaTime?) {
        alarm.set(to: time) { [weak phone] in await phone?.handleDeskTimeout() }
    }

    /// Nothing more is told.
    func close() { continuation.finish() }
}
