import Foundation

/// Runs `body` on so many threads of its own at once, none of which is of the concurrency pool, and waits for all.
///
/// - Parameters:
///   - count: How many threads.
///   - body: Gets the number of its thread, from 0 on.
/// - Throws: The first error that one of them threw.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) async throws {
    try await withThrowingTaskGroup { group in
        for number in 0..<count {
            group.addTask {
                try await withCheckedThrowingContinuation { continuation in
                    Thread.detachNewThread { continuation.resume(with: Result { try body(number) }) }
                }
            }
        }
        try await group.waitForAll()
    }
}
