internal import CallBasics

/// What a REFER asks for: a call to somebody else, which may take the place of one that is there.
///
/// Source: RFC 3515; RFC 3891; RFC 3892
package struct TransferRequest: Sendable {
    /// Whom to call.
    package let target: SIPURI
    /// Who asks, as the header Referred-By has it; nil when it is not told.
    package let referrer: String?
    /// The call of the target that the new one is to replace.
    package let replaces: DialogReference?
    /// Which one it is of its call, counted from 1.
    package internal(set) var number = 0

    /// What a REFER asks for.
    ///
    /// Throws: `badRequest` when there is not one address to call, or it cannot be read
    init(_ refer: SIPMessage) throws(SIPError) {
        guard refer.count(of: .referTo) == 1, let address: NameAddress = try refer.value(.referTo) else {
            throw SIPError(.badRequest, "A REFER names one address in Refer-To. Send one.")
        }
        target = address.uri.withoutHeaders.detached
        referrer = refer.first(.referredBy)?.text
        // Of all that the URI would put in the INVITE nothing else is taken.
        let header = address.uri.headers.first { $0.name.isNamed("Replaces") }
        guard let header else {
            replaces = nil
            return
        }
        replaces = try DialogReference(parsing: header.value.unescaped[...])
    }

    /// Whether it can be called: no other method is asked for, and it is an address for calls.
    var isCall: Bool {
        [.sip, .sips, .tel].contains(target.scheme)
            && target.parameter("method").map { $0.uppercased() == "INVITE" } ?? true
    }
}

/// What became of an own transfer.
package enum TransferProgress: Hashable, Sendable {
    /// The other side takes it.
    case accepted(status: Int)
    /// What the new call has come to yet.
    case progress(status: Int)
    /// The new call was answered.
    case done(status: Int)
    /// The other side does not take it, or the new call was refused.
    case failed(status: Int)
}

/// A transfer that was asked for in a call, by either side; one at a time.
struct Transfer: Sendable {
    /// What is sent once the call may change: the value of Refer-To.
    @Boxed var wanted: NameAddress?
    /// Whether an own REFER is on its way, or its outcome is not told.
    var isSent = false
    /// The number of the last own REFER, as it first left.
    var sentNumber: UInt32 = 0
    /// Whether an own transfer has failed of which something may still be told.
    var hasLapsed = false
    /// When an own transfer that is taken, and of which nothing more is heard, counts as failed.
    var outcomeTime: MediaTime?
    /// A REFER of the other side.
    @Boxed var received: ReceivedTransfer?
    /// How many the other side has sent.
    var receivedCount = 0
    /// When this side hangs up a call whose other side has transferred it, and does not hang up.
    var byeTime: MediaTime?

    /// Whether a NOTIFY is about the last own REFER, and not about one before: the first of a dialog needs no name.
    ///
    /// Source: RFC 3515, section 2.4.6
    func isTold(of event: EventHeader) -> Bool {
        guard let id = event.id else { return !hasLapsed }
        return id.decimal(UInt32.self).map { $0 >= sentNumber } ?? false
    }

    var deadline: MediaTime? { earlier(outcomeTime, earlier(received?.deadline, byeTime)) }
}

/// A REFER of the other side.
struct ReceivedTransfer: Sendable {
    let wishes: TransferRequest
    /// When it counts as refused, as long as the user has not decided; nil once that is so.
    var deadline: MediaTime?
    /// The value of Event; nil when the other side does not want to be told.
    let event: Bytes?
    /// The call that was made for it.
    var call: CallHandle?
}

/// The start line of a response, which tells how a transfer goes on.
///
/// Source: RFC 3420; RFC 3515, section 2.4.5
struct SIPFragment: Hashable, Sendable {
    let status: Int

    init(status: Int) { self.status = status }

    /// Nil when the body is none.
    init?(_ request: SIPMessage) {
        guard (try? request.contentType())?.isNamed("message", "sipfrag") ?? false else { return nil }
        let words = request.bodyBytes.prefix(64).split(separator: .space, maxSplits: 2)
        guard words.count >= 2, words[0].isNamed("SIP/2.0"), let status = words[1].prefix(3).decimal(Int.self),
            100...699 ~= status
        else { return nil }
        self.status = status
    }

    var body: [UInt8] { Array("SIP/2.0 \(status) \(SIPStatus.phrase(status))\r\n".utf8) }
}
