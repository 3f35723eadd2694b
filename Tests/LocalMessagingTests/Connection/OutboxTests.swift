import NIOCore
import Testing

@testable import LocalMessaging

struct OutboxTests {
    private static func frame(_ byteCount: Int) -> OutgoingFrame {
        OutgoingFrame(header: ByteBuffer(repeating: 0, count: byteCount), blob: ByteBuffer(), files: [])
    }

    /// Has `body` use an outbox with a waiter for each of `sizes`, and ends the waiters that it leaves.
    private static func withWaiters(
        _ sizes: [Int],
        in outbox: Outbox,
        _ body: @escaping @Sendable (inout Outbox) -> [Outbox.Waiter]
    ) async -> [Bool] {
        await withTaskGroup(of: (Int, Bool).self) { group in
            let made = Record<Outbox.Waiter>()
            for (index, size) in sizes.enumerated() {
                group.addTask {
                    do {
                        try await withCheckedThrowingContinuation { continuation in
                            made.add(Outbox.Waiter(id: UInt64(index), frame: frame(size), continuation: continuation))
                        }
                        return (index, true)
                    } catch {
                        return (index, false)
                    }
                }
            }
            var outbox = outbox
            let waiters = await made.values(sizes.count)
            for waiter in waiters.sorted(by: { $0.id < $1.id }) { outbox.wait(waiter) }
            for admitted in body(&outbox) { admitted.continuation.resume() }
            for left in outbox.takeWaiters() { left.continuation.resume(throwing: CancellationError()) }
            var isAdmitted = sizes.map { _ in false }
            for await (index, isIn) in group { isAdmitted[index] = isIn }
            return isAdmitted
        }
    }

    private static var full: Outbox {
        var outbox = Outbox(capacity: 100)
        outbox.append(frame(100))
        return outbox
    }

    @Test func `one frame of any size comes in below the capacity, none at it`() {
        var outbox = Outbox(capacity: 100)
        outbox.append(Self.frame(99))
        #expect(outbox.hasRoom)
        outbox.append(Self.frame(1000))
        #expect(!outbox.hasRoom)
        #expect(outbox.byteCount == 1099)
    }

    @Test func `frames are taken once and in their order, and count until they are written`() {
        var outbox = Outbox(capacity: 100)
        for size in [1, 2, 3] { outbox.append(Self.frame(size)) }
        #expect(outbox.takeFrames().map(\.byteCount) == [1, 2, 3])
        #expect(outbox.takeFrames().isEmpty)
        #expect(outbox.byteCount == 6)
        #expect(outbox.written(6).isEmpty)
        #expect(outbox.byteCount == 0)
    }

    @Test func `waiters come in when half of the capacity is free, in their order, up to the capacity`() async {
        let isAdmitted = await Self.withWaiters([40, 40, 1], in: Self.full) { outbox in
            #expect(outbox.written(49).isEmpty)
            let admitted = outbox.written(1)
            #expect(admitted.map(\.id) == [0, 1])
            #expect(outbox.byteCount == 130)
            #expect(outbox.takeFrames().map(\.byteCount) == [100, 40, 40])
            return admitted
        }
        #expect(isAdmitted == [true, true, false])
    }

    @Test func `nobody overtakes a waiter`() async {
        _ = await Self.withWaiters([1], in: Self.full) { outbox in
            _ = outbox.written(49)
            #expect(!outbox.hasRoom, "51 of 100 bytes, but somebody waits")
            return []
        }
    }

    @Test func `one that gives up leaves the others in their order`() async {
        let isAdmitted = await Self.withWaiters([1, 2, 3], in: Self.full) { outbox in
            let left = outbox.removeWaiter(1)
            left?.continuation.resume(throwing: CancellationError())
            #expect(left?.id == 1)
            #expect(outbox.removeWaiter(1) == nil)
            let admitted = outbox.written(100)
            #expect(admitted.map(\.id) == [0, 2])
            return admitted
        }
        #expect(isAdmitted == [true, false, true])
    }
}
