import Foundation
import Glibc
package import Testing

/// A network of its own, without interfaces of others, which ends with this value and the processes in it.
///
/// Nothing of it stays when a test fails: the kernel takes it away, cables and addresses with it.
/// Thread: any.
package final class NetworkNamespace: Sendable {
    /// It told something else than was expected.
    package struct Unexpected: Error {
        package init() {}
    }

    /// Whether this process may make one, and ip(8) and interfaces for it are there.
    package static let isPossible: Bool = {
        let trial = "ip link add a0 type veth peer name b0"
        guard let run = try? ProgramRun("/usr/bin/env", ["unshare", "--net", "sh", "-c", trial]) else { return false }
        return run.wait() == 0
    }()

    private let descriptor: CInt

    private init(_ descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// A new one, with what is made in it: sockets and threads stay in the network in which they began.
    package static func make<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> (network: NetworkNamespace, value: Value) {
        try await withCheckedThrowingContinuation { continuation in
            // The thread is in the network from here on, and ends.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        // The C library's module has no unshare(2); linux/sched.h, CLONE_NEWNET
                        typealias Unshare = @convention(c) (CInt) -> CInt
                        let unshare = unsafeBitCast(try #require(dlsym(nil, "unshare")), to: Unshare.self)
                        try #require(unshare(0x4000_0000) == 0)
                        let descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
                        try #require(descriptor >= 0)
                        return (NetworkNamespace(descriptor), try body())
                    }
                )
            }
        }
    }

    /// A new one, with its loopback up.
    package static func make() async throws -> NetworkNamespace {
        let network = try await make {}.network
        try network.ip("link set lo up")
        return network
    }

    /// Where programs find it, ip(8) too, for as long as this process has it.
    package var path: String { "/proc/\(getpid())/fd/\(descriptor)" }

    /// What stands before the path of a program and its arguments so that it runs here, as the same process.
    package var command: [String] { ["/usr/bin/nsenter", "--net=\(path)"] }

    /// Has ip(8) do what stands in lines or between semicolons, all in one process.
    package func ip(_ commands: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let script = commands.split(whereSeparator: { ";\n".contains($0) })
            .map { "ip " + $0.trimmingCharacters(in: .whitespaces) }.joined(separator: " && ")
        let run = try ProgramRun(command[0], command.dropFirst() + ["sh", "-c", script])
        try #require(run.wait() == 0, "\(run.errors)", sourceLocation: sourceLocation)
    }
}

extension Trait where Self == ConditionTrait {
    /// Needed by what changes the network.
    package static var namespaces: Self {
        .enabled(if: NetworkNamespace.isPossible, "needs the right to make a network namespace")
    }
}
