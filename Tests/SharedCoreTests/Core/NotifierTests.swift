import Testing

@testable import SharedCore

struct NotifierTests {
    private let notifier = Notifier()

    @Test func `a notification between a look and the wait is heard, also when it woke somebody else`() async {
        let count = notifier.count
        let other = Task { [notifier] in await notifier.wait(after: count, until: .now + .seconds(3600)) }
        // It waits by then, or hears the notification as this one does.
        for _ in 0..<100 { await Task.yield() }
        notifier.notify()
        await notifier.wait(after: count, until: .now + .seconds(3600))
        await other.value
    }

    @Test func `a wait ends at its deadline, and with its task`() async {
        await notifier.wait(after: notifier.count, until: .now)
        let waiting = Task { [notifier] in await notifier.wait(after: notifier.count, until: .now + .seconds(3600)) }
        waiting.cancel()
        await waiting.value
    }
}
