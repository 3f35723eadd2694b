import TestSupport
import Testing

/// FFmpeg as the other side of a stream.
enum FFmpegRun {
    /// Sends a described stream until FFmpeg has played 1.5 s of it into a file, however long that one takes to start.
    ///
    /// - Parameters:
    ///   - options: What is sent, and how.
    ///   - file: What FFmpeg heard.
    /// - Returns: The errors that FFmpeg told.
    /// - Throws: What running either says.
    static func plays(_ options: [String], into file: String) throws -> String {
        let scratch = try Scratch()
        let description = scratch.file("x.sdp")
        let stream = ["--to", "127.0.0.1:\(try FreePort.pair())", "--sdp", description, "--seconds", "60"]
        let sender = try ToolRun(["send"] + stream + options)
        defer {
            sender.interrupt()
            sender.wait()
        }
        FileWatch.wait(for: description)
        let player = try ToolRun(
            [
                "-loglevel", "error", "-protocol_whitelist", "file,udp,rtp,srtp", "-analyzeduration", "300000", "-i",
                description, "-t", "1.5", "-y", file,
            ],
            program: try #require(Program.path("ffmpeg"))
        )
        player.wait()
        return player.errors
    }
}
