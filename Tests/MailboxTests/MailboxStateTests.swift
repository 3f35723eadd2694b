import SharedCore
import Testing

@testable import Mailbox

/// What a mailbox sends to whom, in virtual time.
@Suite struct MailboxStateTests {
    @Test func `what is due is sent in order until it is acknowledged, and the end tells how many come later`() throws {
        var state = MailboxState()
        state.add(
            [try post("late", delay: 500), try post("1"), try post("soon", delay: 20), try post("2")],
            now: .zero
        )
        state.connect(1)
        #expect(state.ask(.fetch, 1) == ["1", "2", "pending 2"])
        #expect(state.ask(.acknowledge("1"), 1) == [])
        state.disconnect(1)
        state.connect(2)
        #expect(state.ask(.fetch, 2, at: 20) == ["2", "soon", "pending 1"])
        #expect(state.held == ["2", "soon", "late"])
        #expect(state.nextDue == .milliseconds(500))
    }

    @Test func `a connection is sent what it has once, and another one again`() throws {
        var state = MailboxState()
        state.add([try post("1")], now: .zero)
        state.connect(1)
        state.connect(2)
        #expect(state.ask(.fetch, 1) == ["1", "pending 0"])
        #expect(state.ask(.fetch, 1) == ["pending 0"])
        #expect(state.ask(.fetch, 2) == ["1", "pending 0"])
        #expect(state.counts.sent == 2 && state.counts.held == 1)
    }

    @Test func `who listens is sent what falls due, and who has ceased is not`() throws {
        var state = MailboxState()
        state.add([try post("1", delay: 10), try post("2", delay: 20)], now: .zero)
        state.connect(1)
        state.connect(2)
        #expect(state.ask(.listen(true), 1) == [])
        state.advance(to: .milliseconds(9))
        #expect(state.outputs(of: 1) == [])
        state.advance(to: .milliseconds(10))
        #expect(state.outputs(of: 1) == ["1"] && state.outputs(of: 2) == [])
        #expect(state.ask(.listen(false), 1, at: 10) == [])
        state.advance(to: .milliseconds(20))
        #expect(state.outputs(of: 1) == [])
        #expect(state.ask(.fetch, 1, at: 20) == ["2", "pending 0"])
    }

    @Test func `duplicates are sent each time, and the connection is dropped the first time`() throws {
        var state = MailboxState()
        let content = MailboxContent.message(IncomingMessage(callID: "1", sender: "s", text: "t"))
        state.add([try MailboxPost(content, duplicates: 2, disconnectsAfter: true), try post("2")], now: .zero)
        state.connect(1)
        #expect(state.ask(.fetch, 1) == ["1", "1", "1", "close"])
        state.disconnect(1)
        state.connect(2)
        #expect(state.ask(.fetch, 2) == ["1", "1", "1", "2", "pending 0"])
    }

    @Test func `what was acknowledged over another connection is not sent, though it waited`() throws {
        var state = MailboxState()
        state.add([try post("1"), try post("2")], now: .zero)
        state.connect(1)
        state.connect(2)
        #expect(state.ask(.fetch, 2) == ["1", "2", "pending 0"])
        _ = state.handle(.fetch, from: 1, now: .zero)
        #expect(state.handle(.acknowledge("1"), from: 2, now: .zero) == .acknowledged(try post("1").content))
        #expect(state.outputs(of: 1) == ["2", "pending 0"])
        #expect(state.handle(.acknowledge("1"), from: 1, now: .zero) == nil)
        #expect(state.counts.acknowledged == 1 && state.counts.held == 1)
    }

    @Test func `what was never sent cannot be acknowledged`() throws {
        var state = MailboxState()
        state.add([try post("later", delay: 5), try post("now")], now: .zero)
        state.connect(1)
        for key in ["later", "now", "nobody's"] {
            #expect(state.handle(.acknowledge(key), from: 1, now: .zero) == nil)
        }
        #expect(state.held == ["now", "later"])
    }

    @Test func `an action is answered each time and kept once`() {
        var state = MailboxState()
        state.connect(1)
        let action = MessageAction(id: "7", callID: "1", kind: .reply("yes"))
        #expect(state.ask(.action(action), 1) == ["performed 7"])
        #expect(state.ask(.action(action), 1) == ["performed 7"])
        #expect(state.actions == [action])
    }

    @Test func `actions are kept up to 64 MiB, then refused`() throws {
        var state = MailboxState()
        state.connect(1)
        let text = String(repeating: "x", count: 60_000)
        var answers: [String] = []
        var number = 0
        while answers.last?.hasPrefix("performed") ?? true {
            number += 1
            answers = state.ask(.action(MessageAction(id: "\(number)", callID: "1", kind: .reply(text))), 1)
        }
        #expect(answers.count == 2 && answers[0].hasPrefix("error") && answers[1] == "close")
        #expect((1000...1120).contains(state.actions.count))
    }

    private func post(_ callID: String, delay: Int = 0) throws -> MailboxPost {
        try MailboxPost(
            .message(IncomingMessage(callID: callID, sender: "sip:a@b", text: "t")),
            delay: .milliseconds(delay)
        )
    }
}

extension MailboxState {
    /// Hands in a request, and takes what the connection then sends, in words.
    fileprivate mutating func ask(_ request: MailboxRequest, _ identifier: Int, at milliseconds: Int = 0) -> [String] {
        _ = handle(request, from: identifier, now: .milliseconds(milliseconds))
        return outputs(of: identifier)
    }

    fileprivate mutating func outputs(of identifier: Int) -> [String] {
        var words: [String] = []
        while let output = nextOutput(of: identifier) {
            switch output {
            case .send(.post(let content)): words.append(content.key)
            case .send(.pending(let count)): words.append("pending \(count)")
            case .send(.performed(let identifier)): words.append("performed \(identifier)")
            case .send(.error(let reason)): words.append("error \(reason)")
            case .close: words.append("close")
            }
        }
        return words
    }
}
