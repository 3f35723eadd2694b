import CMeasure
import EngineBenchmarks
import Foundation
import Glibc

/// A run of the tool with its output in a file.
final class ToolProcess {
    /// Its process number.
    let number: pid_t
    private let output: String
    /// When it was first sent SIGKILL, by the monotonic clock.
    private(set) var killedAt: Int64?
    private var status: CInt?
    /// Where it takes lines from; nil where it has this process's input.
    private let lineWriter: CInt?

    init(_ tool: String, _ arguments: [String], output: String, takesLines: Bool = false) throws {
        self.output = output
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var ends: [CInt] = [-1, -1]
        if takesLines {
            guard pipe(&ends) == 0 else { throw Options.Wrong(description: "there is no pipe") }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        }
        defer { if takesLines { close(ends[0]) } }
        lineWriter = takesLines ? ends[1] : nil
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        var words = ([tool] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let failure = posix_spawn(&process, tool, &actions, nil, &words, environ)
        guard failure == 0 else {
            throw Options.Wrong(description: "\(tool) did not start: \(String(cString: strerror(failure)))")
        }
        number = process
    }

    deinit { if let lineWriter { close(lineWriter) } }

    /// Gives it a line.
    func say(_ line: String) throws {
        guard let lineWriter, write(lineWriter, line + "\n", line.utf8.count + 1) == line.utf8.count + 1 else {
            throw Options.Wrong(description: "a process of the tool takes no lines")
        }
    }

    private struct Serving: Decodable { let addresses: [String] }

    /// A server of example.test on this machine, and the options that lead there.
    static func server(_ tool: String, in directory: String, _ options: String...) async throws
        -> (process: ToolProcess, way: [String])
    {
        let words = ["sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--json"] + options
        let server = try ToolProcess(tool, words, output: directory + "/server")
        do {
            let place = try await server.firstLine(Serving.self).addresses.first?.split(separator: " ").last ?? ""
            return (server, ["--proxy", "sip:\(place);lr"])
        } catch {
            server.end()
            throw error
        }
    }

    /// The whole lines that it printed.
    var lines: [String] {
        let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// The first line that it prints, as JSON.
    func firstLine<Value: Decodable>(_: Value.Type) async throws -> Value {
        let limit = ContinuousClock.now + .seconds(10)
        while .now < limit {
            if let line = lines.first, let value = try? JSONDecoder().decode(Value.self, from: Data(line.utf8)) {
                return value
            }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw Options.Wrong(description: "a process of the tool printed nothing")
    }

    /// How many of its lines hold `text`.
    func count(_ text: String) -> Int { lines.count { $0.contains(text) } }

    /// Returns once so many of its lines hold `text`.
    func printed(_ text: String, times: Int = 1) async throws {
        let limit = ContinuousClock.now + .seconds(10)
        while count(text) < times {
            guard .now < limit else { throw Options.Wrong(description: "a process of the tool did not print \(text)") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Kills it; false when it has ended already.
    func kill() -> Bool {
        guard !hasEnded(options: WNOHANG) else { return false }
        killedAt = killedAt ?? measure_now()
        return Glibc.kill(number, SIGKILL) == 0
    }

    /// Has it end in order, by SIGTERM: SIGINT is ignored by what a shell runs in the background, until it catches that.
    func terminate() { if !hasEnded(options: WNOHANG) { Glibc.kill(number, SIGTERM) } }

    /// Waits for its end: the exit code, or the negative number of the signal that ended it.
    func wait() -> CInt {
        _ = hasEnded(options: 0)
        let status = status ?? -1
        let signal = status & 0x7F
        return signal == 0 ? status >> 8 & 0xFF : -signal
    }

    /// Ends it without a word.
    func end() {
        _ = kill()
        _ = wait()
    }

    private func hasEnded(options: CInt) -> Bool {
        if status != nil { return true }
        var status: CInt = 0
        guard waitpid(number, &status, options) == number else { return false }
        self.status = status
        return true
    }
}
