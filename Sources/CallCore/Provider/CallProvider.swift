/// The call screen of a system, as CallKit's is: it shows calls, and says what the user wants with them.
///
/// A phone that has one reports every call to it before anything but 100 is sent, and opens the sound card only between
/// `Phone.activateAudio` and `Phone.deactivateAudio`. The screen acts by `Phone.perform`.
///
///     phone ──reportIncoming, reportOutgoing, reportUpdate, reportEnded, performed──► screen
///     phone ◄──perform(answer, end, ...), activateAudio, deactivateAudio, resetCalls── screen
///
/// Thread: reports come one after the other, in order.
public protocol CallProvider: AnyObject, Sendable {
    /// Shows a call that came, or of which a push told; it rings once this has returned.
    ///
    /// - Throws: `CallRefusal` when it is not shown; then it is refused, and nothing is reported of it any more
    func reportIncoming(_ call: CallUUID, _ update: CallUpdate) async throws(CallRefusal)

    /// An own call is under way, or was answered.
    func reportOutgoing(_ call: CallUUID, _ update: CallUpdate, _ stage: OutgoingStage) async

    /// Something else is known of a call.
    func reportUpdate(_ call: CallUUID, _ update: CallUpdate) async

    /// A call has ended that no action of the screen has ended.
    func reportEnded(_ call: CallUUID, _ reason: ReportedEnd) async

    /// An action was fulfilled, or has failed; told once for each.
    func performed(_ action: ProviderAction, _ outcome: ActionOutcome) async
}
