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

    /// Opens `page` in `network`; whoever it is, it gets the microphone.
    init(_ page: String, in network: NetworkNamespace, hears tone: Tone) throws {
        scratch = try Scratch()
        try tone.write(to: scratch.file("microphone.wav"), rate: 48_000)
        let program = try #require(Self.program)
        run = try ProgramRun(
            network.command[0],
            network.command.dropFirst() + [
                program, "--no-sandbox", "--disable-gpu", "--user-data-dir=\(scratch.file("profile"))",
                "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
                "--use-file-for-fake-audio-capture=\(scratch.file("microphone.wav"))",
                "--autoplay-policy=no-user-gesture-required",
                // It stays, as for somebody who would drive it.
                "--remote-debugging-port=0", page,
            ]
        )
    }

    deinit {
        run.send(SIGKILL)
        run.ends(within: .seconds(10))
    }

    var output: String { run.output + run.errors }
}
