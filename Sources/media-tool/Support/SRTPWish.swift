import ArgumentParser
internal import CallBasics
import CallCore

/// What is to secure the sound of calls.
enum SRTPWish: String, ExpressibleByArgument, CaseIterable {
    case off, sdes, dtls, auto

    static let help: ArgumentHelp =
        "What secures the sound: off, or sdes, SRTP by keys in the messages (RFC 4568), and no call without. No dtls yet, no auto."

    /// Refuses what is not there yet.
    ///
    /// - Throws: `ValidationError`
    func check() throws {
        guard self == .off || self == .sdes else {
            throw ValidationError(
                "There is no DTLS yet: '--srtp \(rawValue)' cannot be had. Say sdes, or off: all can hear it."
            )
        }
    }

    var encryption: MediaEncryption { self == .sdes ? .sdes : .none }

    /// Says on standard error when others can read the keys.
    ///
    /// - Parameters:
    ///   - local: The own address of SIP; nil for one that leads out of the machine.
    ///   - isTLS: Whether nothing but TLS carries it.
    func warn(at local: SocketAddress?, isTLS: Bool) {
        guard self == .sdes, !isTLS, local?.isLoopback != true else { return }
        StandardError.write(
            "Warning: by --srtp sdes keys are in the messages. Without --transport tls all on the way can read them.\n"
        )
    }
}
