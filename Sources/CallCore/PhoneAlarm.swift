internal import CallBasics
internal import SIP
internal import SIPTransport

/// Calls one part of a phone at its deadline, and at no other time.
///
/// Thread: the event loop of the phone.
struct PhoneAlarm {
    private var current: (time: MediaTime, task: Task<Void, Never>)?

    /// Has `ring` called at a time, in the place of the one before; nil for never.
    mutating func set(to time: MediaTime?, _ ring: @escaping @Sendable () async -> Void) {
        guard time != current?.time else { return }
        cancel()
        guard let time else { return }
        let task = Task {
            // Clocks differ, and a sleep may be short of what a deadline is taken for.
            while case let left = time - SIPEndpoint<UserAgent>.now, left > .zero {
                do { try await Task.sleep(for: left) } catch { return }
            }
            await ring()
        }
        current = (time, task)
    }

    mutating func cancel() {
        current?.task.cancel()
        current = nil
    }
}
