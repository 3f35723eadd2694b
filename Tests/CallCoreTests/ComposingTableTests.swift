import CallBasics
import Testing

@testable import CallCore

/// Who is writing, in virtual time.
@Suite struct ComposingTableTests {
    private var table = ComposingTable()
    private var now = MediaTime.zero + .seconds(1)

    private mutating func outputs() -> [ComposingTable.Output] {
        var outputs: [ComposingTable.Output] = []
        while let output = table.poll() { outputs.append(output) }
        return outputs
    }

    /// Lets time go by, second by second, as a clock that is asked for deadlines would.
    private mutating func elapse(_ duration: Duration) -> [ComposingTable.Output] {
        let end = now + duration
        while let deadline = table.deadline, deadline <= end {
            now = deadline
            table.handleTimeout(at: now)
        }
        now = end
        return outputs()
    }

    private static func told(_ isActive: Bool) -> ComposingTable.Output { .told(from: "sip:b@x", isActive: isActive) }
    private static func sent(_ isActive: Bool) -> ComposingTable.Output {
        .send(isActive: isActive, to: "sip:b@x", account: "sip:a@x")
    }

    @Test mutating func `the first key is told, the next ones each minute, and 15 s behind the last that it is over`() {
        var all: [ComposingTable.Output] = []
        for _ in 0..<13 {
            table.notePress(to: "sip:b@x", account: "sip:a@x", at: now)
            all += outputs()
            all += elapse(.seconds(10))
        }
        // At 0, 60 and 120 s.
        #expect(all == [Self.sent(true), Self.sent(true), Self.sent(true)])
        #expect(elapse(.seconds(4)).isEmpty)
        #expect(elapse(.seconds(1)) == [Self.sent(false)])
        #expect(table.deadline == nil)
    }

    @Test mutating func `a text that leaves ends the writing untold, and the next key is a first one`() {
        table.notePress(to: "sip:b@x", account: "sip:a@x", at: now)
        table.noteSent(to: "sip:b@x")
        #expect(outputs() == [Self.sent(true)] && elapse(.seconds(60)).isEmpty)
        table.notePress(to: "sip:b@x", account: "sip:a@x", at: now)
        #expect(outputs() == [Self.sent(true)])
    }

    @Test mutating func `who writes does so until it is told otherwise, a text comes, or the time is over`() {
        table.receive(true, refresh: 90, from: "sip:b@x", at: now)
        #expect(outputs() == [Self.told(true)])
        _ = elapse(.seconds(60))
        table.receive(true, refresh: 90, from: "sip:b@x", at: now)
        #expect(outputs().isEmpty && elapse(.seconds(89)).isEmpty)
        #expect(elapse(.seconds(1)) == [Self.told(false)])

        table.receive(true, refresh: nil, from: "sip:b@x", at: now)
        #expect(
            outputs() == [Self.told(true)] && elapse(.seconds(119)).isEmpty && elapse(.seconds(1)) == [Self.told(false)]
        )
        table.receive(true, refresh: .max, from: "sip:b@x", at: now)
        _ = outputs()
        table.noteText(from: "sip:b@x")
        #expect(outputs() == [Self.told(false)])
        table.receive(false, refresh: nil, from: "sip:b@x", at: now)
        table.noteText(from: "sip:b@x")
        #expect(outputs().isEmpty && table.deadline == nil)
    }

    @Test mutating func `many who write fill a table and no more`() {
        for number in 0..<1000 {
            table.receive(true, refresh: nil, from: "sip:\(number)@x", at: now)
            table.notePress(to: "sip:\(number)@x", account: nil, at: now)
        }
        #expect(outputs().count == 2 * ComposingTable.limit)
        #expect(elapse(.seconds(120)).count == 2 * ComposingTable.limit)
    }
}
