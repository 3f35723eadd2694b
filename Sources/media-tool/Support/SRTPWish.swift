import ArgumentParser
internal import CallBasics
import CallCore

/// What is to secure the sound of calls.
enum SRTPWish: String, ExpressibleByArgument, CaseIterable {
    case off, sdes, dtls, auto

    static let help: ArgumentHelp =
        "What secures the sound: off, sdes (SRTP, keys in the messages, RFC 4568) or dtls (SRTP, keys by DTLS, RFC 5763), and no call without; auto is SRTP where the other side has it."

    init(_ encryption: MediaEncryption) {
        switch encryption {
        case .none: self = .off
        case .sdes: self = .sdes
        case .dtls: self = .dtls
        case .preferred: self = .auto
        }
    }

    var encryption: MediaEncryption {
        switch self {
        case .off: .none
        case .sdes: .sdes
        case .dtls: .dtls
        case .auto: .preferred
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
