import ArgumentParser
internal import CallBasics
import CallCore

/// What is to secure the sound of calls.
enum SRTPWish: String, ExpressibleByArgument, CaseIterable {
    case off, sdes, dtls, auto

    static let help: ArgumentHelp =
        "What secures the sound: off, sdes (SRTP, keys in the messages, RFC 4568) or dtls (SRTP, keys by DTLS, RFC 5763), and no call without. No auto yet."

    init(_ encryption: MediaEncryption) {
        switch encryption {
        case .none: self = .off
        case .sdes: self = .sdes
        case .dtls: self = .dtls
        }
    }

    /// Refuses what is not there yet.
    ///
    /// - Throws: `ValidationError`
    func check() throws {
        guard self != .auto else {
            throw ValidationError(
                "There is no choice yet: '--srtp auto' cannot be had. Say dtls, sdes, or off: all can hear it."
            )
        }
    }

    var encryption: MediaEncryption {
        switch self {
        case .off, .auto: .none
        case .sdes: .sdes
        case .dtls: .dtls
        }
    }

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
