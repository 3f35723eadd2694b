import Glibc
import Synchronization
package import Testing

/// Judges a test in real time only by a run in which the machine did not stand still.
///
/// A test that fails on a machine that went on has failed. One that fails while the machine stood still for longer in all
/// than such tests bear says nothing: its issues are noted as known, and it runs again, three times in all. After that a line
/// says that it was not judged; `Scripts/test skipped` fails where no run has judged it. A test that hangs ends the process.
package struct SteadyMachine: TestTrait, SuiteTrait, TestScoping {
    /// Each test of a suite is judged by itself.
    package var isRecursive: Bool { true }

    private static let attempts = 3

    /// Runs the test until one run counts.
    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let name = test.displayName.map { "\"\($0)\"" } ?? test.name
        let witness = MachineWitness.shared
        var longest = Duration.zero
        for attempt in 1...Self.attempts {
            let start = witness.mark
            let isDisturbed = Atomic(false)
            try await withKnownIssue("the machine stood still meanwhile", isIntermittent: true) {
                try await HangWatch.shared.run(name, function)
            } matching: { _ in
                // The witness may be woken a little later than the test.
                pass(.milliseconds(10))
                guard witness.lostTime(since: start) > MachineWitness.bearable else { return false }
                isDisturbed.store(true, ordering: .relaxed)
                return true
            }
            guard isDisturbed.load(ordering: .relaxed) else { return }
            longest = max(longest, witness.lostTime(since: start))
            // The time limit is for all of them.
            guard !Task.isCancelled else { return }
            if attempt < Self.attempts { awaitSteadiness(witness) }
        }
        let line = "↯ Test \(name) was not judged: it failed in \(Self.attempts) runs, in which the machine stood still"
        let bytes = Array("\(line), for \(longest) of the worst\n".utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    /// Waits for a second in which the machine goes on, for ten at most.
    private func awaitSteadiness(_ witness: MachineWitness) {
        for _ in 0..<10 {
            let start = witness.mark
            pass(.seconds(1))
            if witness.lostTime(since: start) < MachineWitness.bearable { return }
        }
    }
}

extension Trait where Self == SteadyMachine {
    /// For every suite in real time: what fails while the machine stands still runs again.
    package static var onSteadyMachine: Self { Self() }
}
