/// What a port carries.
package enum PortKind: Hashable, Sendable, CustomStringConvertible {
    /// Blocks of samples, one a tick.
    case audio(AudioFormat)
    /// Packets, any number up to `PacketBatch.capacity` a tick.
    case packets

    /// "48000 Hz mono" or "packets".
    package var description: String {
        switch self {
        case .audio(let format): format.description
        case .packets: "packets"
        }
    }
}

/// One place of a filter where a link can attach.
public struct Port: Hashable, Sendable {
    /// The name, unique among the filter's inputs or outputs: "audio", "far end".
    package let name: String
    /// What it carries.
    package let kind: PortKind
    /// Whether a plan without a link here is an error.
    ///
    /// An unlinked optional input reads silence or no packets.
    package let isRequired: Bool

    /// A port called "audio" for samples of `format`; without a link there the filter does not run.
    public static func audio(_ format: AudioFormat) -> Port { audio(format, name: "audio") }

    /// An audio port.
    package static func audio(_ format: AudioFormat, name: String = "audio", isRequired: Bool = true) -> Port {
        Port(name: name, kind: .audio(format), isRequired: isRequired)
    }

    /// A packet port.
    package static func packets(name: String = "packets", isRequired: Bool = true) -> Port {
        Port(name: name, kind: .packets, isRequired: isRequired)
    }
}
