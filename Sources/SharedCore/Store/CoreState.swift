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
/// end. `fence` leads to `free` from everywhere: a main gives up on whoever the state names.
public enum CoreState: String, Codable, Hashable, Sendable, CaseIterable {
    /// No core runs.
    case free
    /// A main core runs.
    case main
    /// An executor core runs.
    case executor
    /// An executor core was asked to give way to a main, and ends its work.
    case executorStopping

    /// What changes the state.
    package enum Event: Hashable, Sendable {
        /// A core that holds the lock starts.
        case begin(CoreRole)
        /// An executor heard that a main wants to start.
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
        case (_, .begin(.executor)): .executor
        case (_, .fence): .free
        case (.executor, .askedToStop), (.executorStopping, .askedToStop): .executorStopping
        case (.main, .end), (.executor, .end), (.executorStopping, .end): .free
        case (.free, .askedToStop), (.free, .end), (.main, .askedToStop): nil
        }
    }
}
