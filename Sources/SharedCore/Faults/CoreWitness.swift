#if FaultPoints
internal import Glibc
#endif

/// Notes in a file when this process begins and ends to run the core, to prove that there is one at a time.
///
/// Only builds with the trait `FaultPoints` note anything. There `SHARED_CORE_WITNESS=FILE` in the environment makes each
/// core append two lines, each by one write:
///
///     B 4711 17 81234567890     begun by process 4711 as epoch 17, nanoseconds of the monotonic clock
///     E 4711 17 81334567890     ended in order
///
/// Both are written while the core holds WRITER. A core that is killed has no second line: it ended at its death.
struct CoreWitness: Sendable {
    #if FaultPoints
    private enum Moment: String { case begun = "B", ended = "E" }

    private let epoch: Epoch
    private let descriptor: CInt

    /// Notes that this process runs the core from now on; nil when nobody wants to know, or the file cannot be opened.
    static func begin(_ epoch: Epoch) -> CoreWitness? {
        guard let path = getenv("SHARED_CORE_WITNESS") else { return nil }
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        let witness = CoreWitness(epoch: epoch, descriptor: descriptor)
        witness.note(.begun)
        return witness
    }

    /// Notes that it runs it no more.
    func end() {
        note(.ended)
        close(descriptor)
    }

    private func note(_ moment: Moment) {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let line = "\(moment.rawValue) \(getpid()) \(epoch) \(time.tv_sec * 1_000_000_000 + time.tv_nsec)\n"
        _ = line.withCString { write(descriptor, $0, strlen($0)) }
    }
    #else
    /// Nobody wants to know.
    static func begin(_: Epoch) -> CoreWitness? { nil }

    /// Nothing: there is none to end.
    func end() {}
    #endif
}
