import ArgumentParser

@main
struct MediaTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "media-tool",
        abstract: "Sound cards, tones, codecs and RTP calls from the shell."
    )
}
