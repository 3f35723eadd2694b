import Testing

@testable import SharedCore

struct BellTests {
    private let bell = Bell()

    @Test func `a ring between a look and the wait is heard, also when it woke somebody else`() async {
        let count = bell.count
        let other = Task { [bell] in await bell.wait(after: count, until: .now + .seconds(3600)) }
        // It waits by then, or hears the ring as this one does.
        for _ in 0..<100 { await Task.yield() }
        bell.ring()
        await bell.wait(after: count, until: .now + .seconds(3600))
        await other.value
    }

    @Test func `a wait ends at its deadline, and with its task`() async {
        await bell.wait(after: bell.count, until: .now)
        let waiting = Task { [bell] in await bell.wait(after: bell.count, until: .now + .seconds(3600)) }
        waiting.cancel()
        await waiting.value
    }
}
