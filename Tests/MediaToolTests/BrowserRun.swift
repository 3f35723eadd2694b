import Foundation
import TestSupport
import Testing

/// A headless Chromium that opens a page, with a tone in the place of a microphone.
final class BrowserRun {
    /// Debian's; nil where there is none.
    ///
    /// What is in the PATH is a script, and the browser lives on when that is killed.
    static let program: String? = {
        let path = "/usr/lib/chromium/chromium-headless-shell"
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()

    private let run: ProgramRun
    private let scratch: Scratch
    /// Takes commands of the DevTools protocol, each ended by a zero.
    private let commands: FileHandle
    private var commandCount = 0
    private var session: String?

    /// Opens `page` in `network`; whoever it is, it gets the microphone.
    init(_ page: String, in network: NetworkNamespace, hears tone: Tone) throws {
        scratch = try Scratch()
        try tone.write(to: scratch.file("microphone.wav"), rate: 48_000)
        let program = try #require(Self.program)
        let pipe = scratch.file("commands")
        try #require(mkfifo(pipe, 0o600) == 0)
        commands = try #require(FileHandle(forUpdatingAtPath: pipe))
        run = try ProgramRun(
            network.command[0],
            network.command.dropFirst() + [
                // What it answers goes with what it prints.
                "sh", "-c", #"exec "$@" 3<"$0" 4>&1"#, pipe, program, "--no-sandbox", "--disable-gpu",
                "--user-data-dir=\(scratch.file("profile"))",
                "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
                "--use-file-for-fake-audio-capture=\(scratch.file("microphone.wav"))",
                "--autoplay-policy=no-user-gesture-required",
                "--remote-debugging-pipe", page,
            ]
        )
    }

    deinit {
        run.send(SIGKILL)
        run.ends(within: .seconds(10))
    }

    var output: String { run.output + run.errors }

    /// What the page makes of an expression, once that is there.
    func evaluate(_ expression: String) throws -> String {
        if session == nil {
            let targets = try ask("Target.getTargets")["targetInfos"] as? [[String: Any]]
            let page = try #require(targets?.first { $0["type"] as? String == "page" }?["targetId"], "\(output)")
            let attached = try ask("Target.attachToTarget", ["targetId": page, "flatten": true])
            session = try #require(attached["sessionId"] as? String)
        }
        let text = "Promise.resolve(\(expression)).then(value => String(value))"
        let result = try ask("Runtime.evaluate", ["expression": text, "awaitPromise": true])["result"]
        return try #require((result as? [String: Any])?["value"] as? String, "\(expression): \(output)")
    }

    private func ask(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
        commandCount += 1
        var command: [String: Any] = ["id": commandCount, "method": method, "params": parameters]
        if let session { command["sessionId"] = session }
        try commands.write(contentsOf: JSONSerialization.data(withJSONObject: command) + [0])
        var answer: [String: Any]?
        ProgramRun.wait {
            let messages = run.output.split(separator: "\0").lazy
                .compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
            answer = messages.first { $0["id"] as? Int == commandCount }
            return answer != nil || !run.isRunning
        }
        return try #require(answer?["result"] as? [String: Any], "\(method): \(output)")
    }
}
