/// What an Opus receiver says of itself in `a=fmtp`, of which `text` writes what it takes.
///
/// A value that is out of its range counts as absent.
/// Source: RFC 7587, sections 6.1 and 7.
struct OpusParameters: Equatable {
    /// Highest sampling rate that the receiver can render, in Hz.
    var maxPlaybackRate: Int?
    /// Highest bitrate that the receiver wants, in bit/s.
    var maxAverageBitrate: Int?
    /// Whether the receiver prefers stereo.
    var prefersStereo: Bool?
    /// Whether what it sends itself is likely to be stereo.
    var sendsStereo: Bool?
    /// Whether the receiver takes in-band FEC.
    var usesFEC: Bool?
    /// Whether the receiver wants constant bitrate.
    var wantsConstantBitrate: Bool?
    /// Whether the receiver prefers discontinuous transmission.
    var usesDTX: Bool?
    /// The audio per packet that the receiver prefers, in ms.
    var ptime: Int?
    /// The least audio per packet, in ms.
    var minPtime: Int?
    /// The most audio per packet, in ms.
    var maxPtime: Int?
    /// Whether the receiver said anything: if so, what it left out has the RFC's default; if not, nothing is known.
    var isKnown = false

    /// Nothing known.
    init() {}

    /// The parameters in `text`.
    init(parsing text: String) {
        let parameters = FormatParameters(parsing: text)
        isKnown = !parameters.isEmpty
        maxPlaybackRate = parameters.integer("maxplaybackrate", in: 8000...48000)
        maxAverageBitrate = parameters.integer("maxaveragebitrate", in: 6000...510_000)
        prefersStereo = parameters.flag("stereo")
        sendsStereo = parameters.flag("sprop-stereo")
        usesFEC = parameters.flag("useinbandfec")
        wantsConstantBitrate = parameters.flag("cbr")
        usesDTX = parameters.flag("usedtx")
        ptime = parameters.integer("ptime", in: 3...120)
        minPtime = parameters.integer("minptime", in: 3...120)
        maxPtime = parameters.integer("maxptime", in: 3...120)
    }

    /// The parameters as text, those that have a value.
    var text: String {
        var parts: [String] = []
        if let minPtime { parts.append("minptime=\(minPtime)") }
        if let maxPlaybackRate { parts.append("maxplaybackrate=\(maxPlaybackRate)") }
        if let maxAverageBitrate { parts.append("maxaveragebitrate=\(maxAverageBitrate)") }
        if let prefersStereo { parts.append("stereo=\(prefersStereo ? 1 : 0)") }
        if let usesFEC { parts.append("useinbandfec=\(usesFEC ? 1 : 0)") }
        if let wantsConstantBitrate { parts.append("cbr=\(wantsConstantBitrate ? 1 : 0)") }
        if let usesDTX { parts.append("usedtx=\(usesDTX ? 1 : 0)") }
        return parts.joined(separator: ";")
    }

    /// The packet length in ms to send.
    ///
    /// It is `wish`, or what the receiver prefers, or 20, within the receiver's limits, and of the lengths that the
    /// encoder has the next. The receiver's least counts more than its most.
    func ptime(wish: Int?) -> Int {
        var value = wish ?? ptime ?? 20
        if let maxPtime { value = min(value, maxPtime) }
        if let minPtime { value = max(value, minPtime) }
        let longEnough = Self.encoderPtimes.first { $0 >= value } ?? 120
        guard let maxPtime, longEnough > maxPtime, maxPtime >= (minPtime ?? 0) else { return longEnough }
        return Self.encoderPtimes.last { $0 <= maxPtime && $0 >= (minPtime ?? 0) } ?? longEnough
    }

    /// Packet lengths that libopus makes and that are whole ticks.
    static let encoderPtimes = [10, 20, 40, 60, 80, 100, 120]
}
