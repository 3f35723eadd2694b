internal import CallBasics
package import SDP

/// One call with all that it waits for, from its INVITE to its end.
///
///     own INVITE    calling ──2xx──► established ──BYE──► gone
///     theirs        ringing ──own 2xx──► established ──BYE──► gone
///
/// An own 2xx is repeated until its ACK; a hang-up waits for that.
struct Call: Sendable {
    enum Stage: Hashable, Sendable {
        case calling
        case ringing
        case established
        /// It is to end with the answer to its INVITE that was taken back, or with the ACK to its 2xx.
        case ending
    }

    /// Whether the INVITE of its dialog was ours.
    var isCaller: Bool
    let account: AccountHandle?
    let callID: Bytes
    var stage: Stage
    @Boxed var dialog: Dialog?
    /// The own session; that of early dialogs stands in `early`.
    @Boxed var session: OfferAnswer?
    var exchange = OfferAnswerExchange()
    var early: [Early] = []
    /// The dialogs of the phones that ring, by which their requests find an own call.
    var earlyDialogs: [DialogID] = []
    /// The own INVITE or UPDATE that is on its way.
    var errand: ErrandID?
    /// The INVITE of the other side that waits for its answer.
    @Boxed var invite: ReceivedInvite?
    /// The last provisional response of ours, where the caller has to acknowledge it.
    @Boxed var provisional: SentProvisional?
    /// What the call is answered with as soon as that is acknowledged.
    @Boxed var wantedAnswer: SessionConfiguration?
    /// What was answered to its last INVITE.
    @Boxed var answer: SentAnswer?
    var timer: SessionTimer?
    var timerWishes: SessionTimer.Wishes
    /// What an own INVITE offers, one after the other, while what was offered before is not acceptable; empty for one session.
    var offers: [SessionConfiguration] = []
    /// The place of the one that is offered.
    var offerIndex = 0
    /// When ringing ends.
    var ringEnd: MediaTime?
    /// What the session is to become.
    @Boxed var wanted: SessionConfiguration?
    /// What the change that is on its way asks for; nil for a refresh.
    @Boxed var asked: SessionConfiguration?
    /// The session before an own change whose answer has come ahead of its 2xx.
    @Boxed var formerSession: OfferAnswer?
    var wantsRefresh = false
    /// Whether that is to be asked for by UPDATE, and whether the other side takes it.
    var wantsUpdate = false
    var takesUpdate = false
    /// Whether the other side takes an INVITE in the place of a call.
    var takesReplaces = false
    /// Whether the way to the other side is another one since it answered last.
    var hasMoved = false
    /// The INVITE that is to take the place of the call's dialog, or the wait for that of the other side.
    @Boxed var repair: Repair?
    /// Since when nothing can leave for the other side behind a move.
    var lossTime: MediaTime?
    /// When a change that met another one, or could not leave, is tried again.
    var changeTime: MediaTime?
    /// A transfer that either side asked for.
    var transfer = Transfer()
    /// The call in which this one was asked for.
    var referrer: CallHandle?
    /// The call that this one takes the place of once it is answered.
    var replaces: CallHandle?
    /// The chat room that it joins; then it has no session, and nothing is told of it.
    var room: RoomHandle?
    /// Why it ends, while that waits.
    @Boxed var end: CallEnd?

    /// What was agreed with one of the phones that ring.
    struct Early: Sendable {
        let dialog: DialogID
        var session: OfferAnswer
        var exchange: OfferAnswerExchange
    }

    struct ReceivedInvite: Sendable {
        let transaction: TransactionID
        let request: SIPMessage
        let flow: Flow
        let tag: Bytes
        let offer: SessionDescription?
        /// The description that a provisional response told already.
        var description: SessionDescription?
        /// Whether both sides have agreed since on something else.
        var isSettled = false
    }

    struct Repair: Sendable {
        var session: OfferAnswer
        var exchange: OfferAnswerExchange
        /// What was wanted of the session, which this one has.
        let wanted: SessionConfiguration?
        /// How the call ends when it comes to nothing.
        let end: CallEnd
        let deadline: MediaTime
        /// Whether the other side has ended the former dialog.
        var isFormerOver = false
    }

    struct SentAnswer: Sendable {
        let transaction: TransactionID
        let response: SIPMessage
        let number: UInt32
        var repeater: AnswerRepeater
    }

    init(_ invite: SIPMessage, isCaller: Bool, account: AccountHandle?, _ stage: Stage, _ wishes: SessionTimer.Wishes) {
        (self.isCaller, self.account, self.stage, timerWishes) = (isCaller, account, stage, wishes)
        callID = (invite.callID ?? []).detached
    }

    /// Notes what a message of the other side says that it takes.
    mutating func noteMethods(of message: SIPMessage) {
        if message.count(of: .supported) > 0 { takesReplaces = message.lists("replaces", in: .supported) }
        guard message.count(of: .allow) > 0 else { return }
        takesUpdate = message.lists("UPDATE", in: .allow)
    }

    var deadline: MediaTime? {
        let repeats = earlier(answer?.repeater.deadline, provisional?.responder.deadline)
        let changes = earlier(earlier(timer?.deadline, changeTime), transfer.deadline)
        return earlier(earlier(earlier(ringEnd, repair?.deadline), repeats), changes)
    }

    /// Whether an own change may leave now.
    var mayChange: Bool {
        stage == .established && errand == nil && repair == nil && invite == nil && changeTime == nil
            && exchange.mayOffer && answer?.repeater.isOver ?? true
    }
}

extension SIPMessage {
    /// The session description that it brings; nil when it has none.
    ///
    /// Throws: `badRequest` when it cannot be read
    package func sessionDescription() throws(SIPError) -> SessionDescription? {
        guard !bodyBytes.isEmpty else { return nil }
        let parts = try bodyParts()
        // What has no type is what a call usually brings. Of alternatives the last one is liked best (RFC 2046, section 5.1.4).
        guard let part = parts.last(where: { $0.type?.isNamed("application", "sdp") ?? (parts.count == 1) }),
            part.isPlain
        else { return nil }
        let bytes = Array(part.bytes)
        do throws(SDPError) {
            return try SessionDescription(parsing: bytes.span)
        } catch {
            throw SIPError(.badRequest, error.message)
        }
    }

    mutating func setDescription(_ description: SessionDescription) throws(SIPError) {
        var bytes: [UInt8] = []
        description.serialize(into: &bytes)
        try set(.contentType, to: Bytes("application/sdp"))
        setBody(bytes)
    }
}
