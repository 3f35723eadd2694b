import ArgumentParser
import MediaTransport

/// Where the secrets of DTLS are written, by which Wireshark shows handshakes that were captured.
struct KeyLogOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file to add the secrets of DTLS to (RFC 9850), mode 0600. Who reads it, and has the packets, has the calls' keys.",
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
