/// What an agent by WebSocket speaks.
public enum AgentFormat: String, Sendable, Hashable, CaseIterable {
    /// Twilio's Media Streams: JSON, u-law of 8000 Hz in Base64.
    case twilio
    /// Telnyx's, the same with other names.
    case telnyx
    /// Plivo's, the same with other names for what the agent says.
    case plivo
    /// Exotel's, with linear sound of 8000, 16,000 or 24,000 Hz.
    case exotel
    /// Vonage's: sound in binary frames, 8000, 16,000 or 24,000 Hz.
    case vonage
    /// The one of jambonz, `listen`: sound in binary frames, 8000, 16,000, 24,000 or 48,000 Hz.
    case jambonz
    /// The WebSocket channel of Asterisk, its events and commands in JSON: sound in binary frames, u-law of 8000 Hz or 16 bits of 16,000,
    /// 24,000 or 48,000 Hz.
    case asterisk
    /// The same with events and commands as plain lines, as Asterisk has it where nothing else is asked for.
    case asteriskPlain = "asterisk-plain"

    /// Rates of its sound; the first one is taken where none is asked for.
    public var sampleRates: [Int] {
        switch self {
        case .twilio, .telnyx, .plivo: [8000]
        case .exotel: [8000, 16_000, 24_000]
        case .vonage: [16_000, 8000, 24_000]
        case .jambonz, .asterisk, .asteriskPlain: [8000, 16_000, 24_000, 48_000]
        }
    }

    /// What a connection asks for as the subprotocol of WebSocket.
    var subprotocol: String? {
        switch self {
        case .jambonz: "audio.jambonz.org"
        case .asterisk, .asteriskPlain: "media"
        case .twilio, .telnyx, .plivo, .exotel, .vonage: nil
        }
    }

    /// Whether its agents dial in, where that is asked for.
    package var dialsIn: Bool { self == .asterisk || self == .asteriskPlain }

    /// The rate that is wanted, or the usual one.
    ///
    /// - Throws: `AgentError` where the format has no such rate
    func rate(_ wanted: Int?) throws(AgentError) -> Int {
        let rate = wanted ?? sampleRates[0]
        guard sampleRates.contains(rate) else { throw .noSound(rawValue, rate, instead: sampleRates[0]) }
        return rate
    }

    /// A codec of this format.
    ///
    /// - Parameters:
    ///   - sampleRate: One of `sampleRates`.
    ///   - connection: What the connection is called; nil for a name that is drawn.
    ///   - generator: What names are drawn by.
    /// - Returns: One for a connection.
    func codec(
        sampleRate: Int,
        connection: String? = nil,
        _ generator: inout some RandomNumberGenerator
    ) -> any AgentCodec {
        switch self {
        case .twilio, .telnyx, .plivo, .exotel:
            MediaStreamsCodec(MediaStreamsDialect(self, sampleRate: sampleRate), &generator)
        case .vonage: VonageCodec(sampleRate: sampleRate)
        case .jambonz: JambonzCodec(sampleRate: sampleRate)
        case .asterisk, .asteriskPlain:
            AsteriskCodec(
                sampleRate: sampleRate,
                isPlain: self == .asteriskPlain,
                connection: connection ?? AsteriskCodec.connectionName(&generator)
            )
        }
    }
}
