import CallBasics
import Testing

@testable import CallCore
@testable import SIP

/// What is written down of calls that are over.
@Suite struct CallLogTests {
    private let handle = CallHandle(slot: 1, serial: 1)

    private func outcome(
        _ end: CallEnd,
        isOutgoing: Bool = false,
        answeredAfter answer: Duration? = nil
    ) -> CallLogEntry? {
        var log = CallLog()
        log.begin(handle, "id", with: ("sip:a@b", "A"), isOutgoing: isOutgoing, unixSeconds: 1_700_000_000)
        if let answer { log.noteAnswered(handle, at: .zero + answer) }
        let entry = log.noteEnd(handle, end, at: .zero + .seconds(10))
        #expect(log.entries == [entry].compactMap(\.self))
        #expect(log.missedCount == (entry?.outcome == .missed ? 1 : 0))
        // Once is enough.
        #expect(log.noteEnd(handle, end, at: .zero + .seconds(10)) == nil)
        return entry
    }

    @Test func `a talk is written down with its length`() throws {
        for isOutgoing in [false, true] {
            let entry = try #require(
                outcome(CallEnd(.them, .hungUp), isOutgoing: isOutgoing, answeredAfter: .milliseconds(7500))
            )
            #expect(entry.outcome == .talked && entry.talkSeconds == 2.5 && entry.isOutgoing == isOutgoing)
            #expect(entry.remote == "sip:a@b" && entry.remoteName == "A" && entry.unixSeconds == 1_700_000_000)
        }
    }

    @Test func `what nobody took is missed, what another phone took is not`() {
        #expect(outcome(CallEnd(.them, .cancelled))?.outcome == .missed)
        #expect(outcome(CallEnd(.us, .refused(486)))?.outcome == .missed)
        #expect(outcome(CallEnd(.us, .refused(480)))?.outcome == .missed)
        #expect(outcome(CallEnd(.us, .refused(603)))?.outcome == .declined)
        #expect(outcome(CallEnd(.them, .cancelled, reason: "SIP;cause=200"))?.outcome == .answeredElsewhere)
        #expect(outcome(CallEnd(.them, .cancelled, reason: "SIP ;cause=603"))?.outcome == .declinedElsewhere)
        #expect(outcome(CallEnd(.them, .cancelled, reason: "Q.850;cause=16"))?.outcome == .missed)
    }

    @Test func `a call whose push was written down is so once, whoever else is refused like it`() {
        var log = CallLog()
        _ = log.noteMissed("late", CallUpdate(remote: "sip:a@b"), unixSeconds: 0)
        for (slot, id) in ["late", "other"].enumerated() {
            let handle = CallHandle(slot: slot, serial: 1)
            log.begin(handle, id, with: ("sip:a@b", nil), isOutgoing: false, unixSeconds: 0)
            _ = log.noteEnd(handle, CallEnd(.us, .refused(410)), at: .zero)
        }
        #expect(log.entries.map(\.id) == ["other", "late"] && log.entries.map(\.outcome) == [.declined, .missed])
    }

    @Test func `own calls that came to nothing say why`() {
        #expect(outcome(CallEnd(.us, .cancelled), isOutgoing: true)?.outcome == .cancelled)
        #expect(outcome(CallEnd(.them, .refused(486)), isOutgoing: true)?.outcome == .refused)
        #expect(outcome(CallEnd(.them, .refused(480)), isOutgoing: true)?.outcome == .unanswered)
        #expect(outcome(CallEnd(.us, .timeout), isOutgoing: true)?.outcome == .unanswered)
        #expect(outcome(CallEnd(.us, .unacceptable), isOutgoing: true)?.outcome == .failed)
    }

    @Test func `256 are kept, the newest first, and missed ones are counted until they were looked at`() {
        var log = CallLog()
        for number in 1...300 {
            _ = log.noteMissed("\(number)", CallUpdate(remote: "sip:a@b"), unixSeconds: 0)
        }
        #expect(log.entries.count == CallLog.capacity && log.entries.first?.id == "300" && log.missedCount == 300)
        log.resetMissed()
        #expect(log.missedCount == 0 && log.entries.count == CallLog.capacity)
    }
}
