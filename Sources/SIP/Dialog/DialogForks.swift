internal import CallBasics

/// The dialogs that one INVITE of the caller's makes: proxies may ring many phones, and more than one may answer.
///
/// The first 2xx makes the call. Each further one of another phone is acknowledged and ended; each repeat of one gets
/// the same ACK again.
/// Source: RFC 3261, section 13.2.2.4
package struct DialogForks: Sendable {
    /// Early dialogs beyond these are not told apart.
    package static let limit = 16

    /// What a response to the INVITE means.
    package enum Outcome: Sendable {
        /// It makes no dialog, or repeats what is known.
        case none
        /// A phone rings, or speaks before it answers.
        case early(Dialog)
        /// The call is answered: acknowledge it.
        case answered(Dialog)
        /// One that was answered elsewhere is answered again: acknowledge it, then BYE.
        case surplus(Dialog)
        /// A 2xx came again, which its ACK has not reached: send that again.
        case repeated(DialogID)
    }

    private let request: SIPMessage
    private var early: [Dialog] = []
    /// The call's, and those that were ended.
    private var answered: [DialogID] = []

    /// `request` is the INVITE as it was sent.
    package init(_ request: SIPMessage) { self.request = request }

    /// How many dialogs it holds.
    package var count: Int { early.count + answered.count }

    /// The early dialog of the phone that was heard of last; requests before the answer go by it.
    package var latest: Dialog? { early.last }

    /// Takes a response to the INVITE; beyond the limit answers are `none`.
    ///
    /// Throws: `badRequest` when it makes a dialog that cannot be used
    package mutating func receive(_ response: SIPMessage, on flow: Flow) throws(SIPError) -> Outcome {
        guard let status = response.statusCode, status < 300, let id = try DialogID(response: response) else {
            return .none
        }
        let place = early.firstIndex { $0.id == id }
        guard status >= 200 else { return try ring(response, place, on: flow) }
        guard !answered.contains(id) else { return .repeated(id) }
        var dialog: Dialog
        if let place {
            dialog = early[place]
            try dialog.confirm(by: response)
        } else {
            dialog = try Dialog(client: request, response: response, on: flow)
        }
        guard answered.count < Self.limit else { return .none }
        if let place { early.remove(at: place) }
        answered.append(id)
        return answered.count == 1 ? .answered(dialog) : .surplus(dialog)
    }

    private mutating func ring(_ response: SIPMessage, _ place: Int?, on flow: Flow) throws(SIPError) -> Outcome {
        guard answered.isEmpty else { return .none }
        if let place {
            // The one that was heard of last is the latest.
            early.append(early.remove(at: place))
            return .none
        }
        guard early.count < Self.limit else { return .none }
        let dialog = try Dialog(client: request, response: response, on: flow)
        early.append(dialog)
        return .early(dialog)
    }

    /// A request within an early dialog, and that dialog; nil when there is none of that name.
    ///
    /// Throws: as `Dialog.makeRequest`
    mutating func makeRequest(_ method: SIPMethod, in id: DialogID) throws(SIPError) -> (SIPMessage, Dialog)? {
        guard let place = early.firstIndex(where: { $0.id == id }) else { return nil }
        return (try early[place].makeRequest(method), early[place])
    }

    /// Takes a request of a phone that rings; nil when there is no such dialog.
    ///
    /// Throws: as `Dialog.receive`
    mutating func receive(_ request: SIPMessage, in id: DialogID) throws(SIPError) -> Dialog.Verdict? {
        guard let place = early.firstIndex(where: { $0.id == id }) else { return nil }
        return try early[place].receive(request)
    }

    /// Takes the address that a request of a phone that rings tells, which is answered by a 2xx.
    ///
    /// Throws: as `Dialog.refreshTarget`
    mutating func refreshTarget(by request: SIPMessage, in id: DialogID) throws(SIPError) {
        guard let place = early.firstIndex(where: { $0.id == id }) else { return }
        try early[place].refreshTarget(by: request)
    }

    /// The next number of an early dialog, for a request that leaves once more.
    mutating func takeNumber(in id: DialogID) -> UInt32? {
        early.firstIndex { $0.id == id }.map { early[$0].takeNumber() }
    }

    /// Forgets what rings: the INVITE has its final response.
    package mutating func endEarly() { early = [] }
}
