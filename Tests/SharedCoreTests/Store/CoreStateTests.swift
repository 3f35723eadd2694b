import Testing

@testable import SharedCore

@Suite struct CoreStateTests {
    struct Transition: Sendable, CustomTestStringConvertible {
        let from: CoreState
        let event: CoreState.Event
        let to: CoreState?

        var testDescription: String { "\(from.rawValue), \(event): \(to?.rawValue ?? "illegal")" }
    }

    @Test(arguments: [
        Transition(from: .free, event: .begin(.main), to: .main),
        Transition(from: .free, event: .begin(.executor), to: .executor),
        Transition(from: .free, event: .begin(.call), to: .executor),
        Transition(from: .free, event: .askedToStop, to: nil),
        Transition(from: .free, event: .end, to: nil),
        Transition(from: .free, event: .fence, to: .free),
        Transition(from: .main, event: .begin(.main), to: .main),
        Transition(from: .main, event: .begin(.executor), to: .executor),
        Transition(from: .main, event: .askedToStop, to: nil),
        Transition(from: .main, event: .end, to: .free),
        Transition(from: .main, event: .fence, to: .free),
        Transition(from: .executor, event: .begin(.main), to: .main),
        Transition(from: .executor, event: .begin(.executor), to: .executor),
        Transition(from: .executor, event: .askedToStop, to: .executorStopping),
        Transition(from: .executor, event: .end, to: .free),
        Transition(from: .executor, event: .fence, to: .free),
        Transition(from: .executorStopping, event: .begin(.main), to: .main),
        Transition(from: .executorStopping, event: .begin(.executor), to: .executor),
        Transition(from: .executorStopping, event: .askedToStop, to: .executorStopping),
        Transition(from: .executorStopping, event: .end, to: .free),
        Transition(from: .executorStopping, event: .fence, to: .free),
    ])
    func `each event leads where the table says`(transition: Transition) {
        #expect(transition.from.next(after: transition.event) == transition.to)
    }
}
