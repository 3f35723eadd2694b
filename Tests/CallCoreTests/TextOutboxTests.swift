import CallBasics
import Testing

@testable import CallCore

/// Texts that wait, in virtual time.
@Suite struct TextOutboxTests {
    private static let account = "sip:a@x"
    private var outbox = TextOutbox()
    private var now = MediaTime.zero + .seconds(1)

    init() { outbox.setRegistered(Self.account, true, at: now) }

    private static func item(_ id: String, to receiver: String = "sip:b@x", from account: String? = account)
        -> TextOutbox.Item
    {
        TextOutbox.Item(id: id, receiver: receiver, account: account, type: "text/plain", body: Array(id.utf8))
    }

    /// What it tells and sends, as words.
    private mutating func outputs() -> [String] {
        var words: [String] = []
        while let output = outbox.poll() {
            switch output {
            case .send(let item): words.append("send \(item.id)")
            case .told(let id, .pendingDelivery): words.append("\(id) waits")
            case .told(let id, .inProgress): words.append("\(id) leaves")
            case .told(let id, .delivered): words.append("\(id) delivered")
            case .told(let id, .notDelivered(let error)): words.append("\(id) not delivered: \(error.code)")
            }
        }
        return words
    }

    private mutating func put(_ id: String, to receiver: String = "sip:b@x", from account: String? = account)
        -> [String]
    {
        let isPut = outbox.put(Self.item(id, to: receiver, from: account), at: now)
        #expect(isPut)
        return outputs()
    }

    private mutating func note(_ id: String, _ outcome: TextOutbox.Outcome) -> [String] {
        outbox.note(outcome, of: id, at: now)
        return outputs()
    }

    private mutating func refuse(_ id: String, _ status: Int) -> [String] {
        note(id, TextOutbox.Outcome(PhoneError(.refused(status: status), "")))
    }

    /// Lets time go by as a clock that is asked for deadlines would.
    private mutating func elapse(_ duration: Duration) -> [String] {
        let end = now + duration
        while let deadline = outbox.deadline, deadline <= end {
            now = deadline
            outbox.handleTimeout(at: now)
            if outbox.deadline == deadline { break }
        }
        now = end
        return outputs()
    }

    @Test mutating func `a text leaves at once, and the next to the same receiver when it was taken`() {
        #expect(put("1") == ["1 waits", "1 leaves", "send 1"])
        #expect(put("2") == ["2 waits"])
        #expect(put("3", to: "sip:c@x") == ["3 waits", "3 leaves", "send 3"])
        #expect(note("1", .delivered) == ["1 delivered", "2 leaves", "send 2"])
        #expect(note("2", .delivered) == ["2 delivered"])
        #expect(outbox.count == 1)
        #expect(note("3", .delivered) == ["3 delivered"])
        #expect(outbox.count == 0 && outbox.deadline == nil)
    }

    @Test(arguments: [300, 400, 401, 404, 407, 415, 480, 486, 500, 504, 600, 603])
    mutating func `a refusal is final, and lets the next leave`(status: Int) {
        _ = put("1")
        _ = put("2")
        #expect(refuse("1", status) == ["1 not delivered: refused(status: \(status))", "2 leaves", "send 2"])
    }

    @Test(arguments: [408, 503])
    mutating func `a text that may be taken later is tried again, later each time, with those behind it in order`(
        status: Int
    ) {
        _ = put("1")
        _ = put("2")
        for seconds in [15, 30, 60, 120, 240, 480, 900, 900] {
            #expect(refuse("1", status) == ["1 waits"])
            #expect(elapse(.seconds(seconds) - .milliseconds(1)) == [])
            #expect(elapse(.milliseconds(1)) == ["1 leaves", "send 1"])
        }
        #expect(note("1", .delivered) == ["1 delivered", "2 leaves", "send 2"])
    }

    @Test mutating func `a server says how long it wants to be left alone, an hour at most`() {
        _ = put("1")
        let busy = PhoneError(.refused(status: 503), "")
        #expect(note("1", TextOutbox.Outcome(busy, retryAfter: .seconds(100))) == ["1 waits"])
        #expect(elapse(.seconds(99)) == [])
        #expect(elapse(.seconds(1)) == ["1 leaves", "send 1"])
        #expect(note("1", TextOutbox.Outcome(busy, retryAfter: .seconds(1_000_000))) == ["1 waits"])
        #expect(elapse(.seconds(3599)) == [])
        #expect(elapse(.seconds(1)) == ["1 leaves", "send 1"])
    }

    @Test
    mutating func `without its account a text waits, and leaves as soon as that is registered, whatever it waited for`()
    {
        outbox.setRegistered(Self.account, false, at: now)
        #expect(put("1") == ["1 waits"])
        #expect(put("2", to: "sip:c@x", from: nil) == ["2 waits", "2 leaves", "send 2"])
        #expect(elapse(.seconds(3600)) == [])
        outbox.setRegistered(Self.account, true, at: now)
        #expect(outputs() == ["1 leaves", "send 1"])
        #expect(note("1", .unanswered()) == ["1 waits"])
        // Registered still: that changes nothing.
        outbox.setRegistered(Self.account, true, at: now)
        #expect(outputs() == [])
        outbox.setRegistered(Self.account, false, at: now)
        #expect(elapse(.seconds(60)) == [])
        outbox.setRegistered(Self.account, true, at: now)
        #expect(outputs() == ["1 leaves", "send 1"])
    }

    @Test mutating func `without a network nothing leaves`() {
        outbox.setNetworkReachable(false, at: now)
        #expect(put("1") == ["1 waits"])
        #expect(put("2", to: "sip:c@x", from: nil) == ["2 waits"])
        #expect(elapse(.seconds(3600)) == [])
        outbox.setNetworkReachable(true, at: now)
        #expect(outputs() == ["1 leaves", "send 1", "2 leaves", "send 2"])
    }

    @Test mutating func `a text waits three days, with those behind it`() {
        outbox.setRegistered(Self.account, false, at: now)
        _ = put("1")
        _ = elapse(.seconds(100))
        _ = put("2")
        #expect(elapse(.seconds(3 * 24 * 3600 - 101)) == [])
        #expect(elapse(.seconds(1)) == ["1 not delivered: unanswered"])
        #expect(elapse(.seconds(99)) == [])
        #expect(elapse(.seconds(1)) == ["2 not delivered: unanswered"])
        #expect(outbox.count == 0)
    }

    @Test mutating func `what is on its way at its end has its answer first`() {
        _ = put("1")
        #expect(elapse(.seconds(4 * 24 * 3600)) == [])
        #expect(note("1", .unanswered()) == ["1 waits", "1 not delivered: unanswered"])
    }

    @Test mutating func `one that waits can be taken back, one on its way cannot`() {
        _ = put("1")
        _ = put("2")
        _ = put("3")
        let taken = ["1", "4", "2"].map { outbox.remove($0, at: now) }
        #expect(taken == [false, false, true])
        #expect(outputs() == [])
        #expect(note("1", .unanswered()) == ["1 waits"])
        let isTaken = outbox.remove("1", at: now)
        #expect(isTaken)
        #expect(outputs() == ["3 leaves", "send 3"])
        #expect(outbox.count == 1)
    }

    @Test mutating func `there is an end to those that wait, and all end with the phone`() {
        for id in 0..<TextOutbox.limit { _ = put("\(id)") }
        let isPut = outbox.put(Self.item("more", to: "sip:c@x"), at: now)
        #expect(!isPut)
        #expect(outputs() == [])
        outbox.end(PhoneError(.state, ""))
        #expect(outputs().count == TextOutbox.limit)
        #expect(outbox.count == 0)
        #expect(note("0", .delivered) == [])
    }
}
