import Foundation
import Glibc
import Synchronization

/// Ends the process in which a test hangs, so that a run tells which one it was, and is over.
///
/// The limits of suites cancel what waits for a task; this one is for tests that wait for what nobody cancels.
final class HangWatch: Sendable {
    static let shared = HangWatch()
    /// Longer than the limits of all suites, and than what a test takes on a slow machine.
    private static let limit = Duration.seconds(360)

    private let running = Mutex<[Int: (name: String, end: ContinuousClock.Instant)]>([:])
    private let count = Atomic(0)

    private init() { Thread.detachNewThread { self.watch() } }

    /// Runs what does not take longer.
    func run(_ name: String, _ body: () async throws -> Void) async rethrows {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        running.withLock { $0[number] = (name, .now + Self.limit) }
        defer { running.withLock { $0[number] = nil } }
        try await body()
    }

    private func watch() {
        while true {
            pass(.seconds(1))
            let now = ContinuousClock.now
            guard let late = running.withLock({ $0.values.first { $0.end < now } }) else { continue }
            let bytes = Array("✘ Test \(late.name) hangs: it was not over after \(Self.limit)\n".utf8)
            // What was printed before it may still be in the buffers.
            fflush(nil)
            _ = write(STDOUT_FILENO, bytes, bytes.count)
            abort()
        }
    }
}
