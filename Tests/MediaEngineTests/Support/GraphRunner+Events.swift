@testable import MediaEngine

extension GraphRunner {
    /// Hands the events of `filter` that wait to `body`, and forgets those of others.
    func drainEvents<Command, Event>(of filter: ControlledFilter<Command, Event>, _ body: (Event) -> Void) {
        drainEvents { event in
            if event.filter == filter.id { body(event.message.load(as: Event.self)) }
        }
    }
}
