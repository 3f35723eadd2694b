/// What runs in a group, as written in the store.
///
///                 begin(main)
///      free ──────────────────────────────► main
///        ▲ │                                  │
///        │ │ begin(executor)                  │ end
///        │ └─────────► executor ──┐           │
///        │                │       │ end       │
///        │     askedToStop│       │           │
///        │                ▼       ▼           │
///        └─────── executorStopping ───────────┘
///
/// `begin` is legal in every state: who begins holds the lock of the kernel, so whoever the state still names has died without an
/// end. `fence` leads to `free` from everywhere: a main gives up on whoever the state names. A core for calls counts as an executor;
/// the record of the owner tells them apart.
public enum CoreState: String, Codable, Hashable, Sendable, CaseIterable {
    /// No core runs.
    case free
    /// A main core runs.
    case main
    /// An executor core runs, or one for calls.
    case executor
    /// It was asked to give way, and ends its work.
    case executorStopping

    /// What changes the state.
    package enum Event: Hashable, Sendable {
        /// A core that holds the lock starts.
        case begin(CoreRole)
        /// An executor heard that a core with priority wants to start.
        case askedToStop
        /// The core ended in order.
        case end
        /// A main took the right to write from the core that was there.
        case fence
    }

    /// The state after an event; nil when the event cannot happen in this state.
    package func next(after event: Event) -> CoreState? {
        switch (self, event) {
        case (_, .begin(.main)): .main
        case (_, .begin(.executor)), (_, .begin(.call)): .executor
        case (_, .fence): .free
        case (.executor, .askedToStop), (.executorStopping, .askedToStop): .executorStopping
        case (.main, .end), (.executor, .end), (.executorStopping, .end): .free
        case (.free, .askedToStop), (.free, .end), (.main, .askedToStop): nil
        }
    }
}
