import ArgumentParser

/// Calls with browsers.
struct WebRTCCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webrtc",
        abstract: "Calls with a browser: secured by DTLS, the way found by ICE.",
        discussion: """
            The browser looks for the way (ICE); this side only answers its checks (ICE-lite), so it has to be reachable from there: \
            by an address of its own, not through a NAT, unless --ice full has it look for the way, too. Sound is secured by SRTP with keys by DTLS, or there is none. \
            With --json each thing that happens is a line.

            EXAMPLES
              media-tool webrtc serve --echo
              media-tool webrtc answer --offer offer.sdp --answer answer.sdp --input greeting.wav
            """,
        subcommands: [WebRTCServeCommand.self, WebRTCAnswerCommand.self, WebRTCOfferCommand.self]
    )
}
