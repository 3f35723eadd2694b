import ArgumentParser
import MediaTransport

/// Where the secrets of calls are written, by which Wireshark decrypts a capture of their packets.
struct KeyLogOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file to add the secrets of DTLS to (RFC 9850), mode 0600: who reads it, and has the packets, hears the calls.",
            valueName: "file"
        ),
        completion: .file()
    )
    var keyLog: String?

    /// Has the secrets of all handshakes from now on written there, to the end of the process.
    ///
    /// - Throws: `ToolFailure` when that cannot be, or others may read it
    func begin() throws {
        if let keyLog { KeyLog.shared.write(to: try SecretFile.openForAppending(keyLog)) }
    }
}
