import Foundation
import Glibc
import SharedCore

/// A process that sleeps until it is ended.
final class Child {
    let identity: ProcessIdentity
    private var isRunning = true

    init() throws {
        var pid: pid_t = 0
        let arguments = [strdup("sleep"), strdup("600"), nil]
        defer { arguments.forEach { free($0) } }
        guard posix_spawn(&pid, "/bin/sleep", nil, nil, arguments, nil) == 0, let identity = ProcessIdentity(pid: pid)
        else {
            throw POSIXError(.ESRCH)
        }
        self.identity = identity
    }

    deinit {
        end()
    }

    /// Ends it; returns once it is gone.
    func end() {
        guard isRunning else { return }
        isRunning = false
        kill(identity.pid, SIGKILL)
        waitpid(identity.pid, nil, 0)
    }
}
