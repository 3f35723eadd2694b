import Testing

@testable import SDP

/// Random numbers that are the same in each run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

extension SessionDescription {
    init(parsing bytes: [UInt8]) throws(SDPError) { try self.init(parsing: bytes.span) }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        serialize(into: &bytes)
        return bytes
    }

    /// The version of the o= line; 0 when there is none.
    var version: UInt64 { origin.flatMap { UInt64($0.version) } ?? 0 }

    /// The lines without their ends.
    var texts: [String] {
        description.split(separator: "\r\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// The lines of m= line `index`.
    func section(_ index: Int) -> [String] {
        sections[index].map { String(decoding: [$0.type, 0x3D], as: UTF8.self) + $0.value.text }
    }
}

extension PayloadFormat {
    static let pcmu = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
    static let pcma = PayloadFormat(payloadType: 8, encodingName: "PCMA", clockRate: 8000)
    static let g722 = PayloadFormat(payloadType: 9, encodingName: "G722", clockRate: 8000)
    static let noise = PayloadFormat(payloadType: 13, encodingName: "CN", clockRate: 8000)
    static let iLBC = PayloadFormat(payloadType: 97, encodingName: "iLBC", clockRate: 8000)

    static func opus(_ payloadType: UInt8 = 96, _ parameters: String? = "useinbandfec=1") -> PayloadFormat {
        PayloadFormat(
            payloadType: payloadType,
            encodingName: "opus",
            clockRate: 48000,
            channelCount: 2,
            parameters: parameters
        )
    }

    static func events(_ payloadType: UInt8 = 101, _ clockRate: Int = 8000, _ parameters: String? = "0-15")
        -> PayloadFormat
    {
        PayloadFormat(
            payloadType: payloadType,
            encodingName: "telephone-event",
            clockRate: clockRate,
            parameters: parameters
        )
    }
}

extension [PayloadFormat] {
    /// What a phone has: Opus, PCMU, PCMA and telephone events for both clock rates.
    static let phone: [PayloadFormat] = [.opus(), .pcmu, .pcma, .events(100, 48000), .events(101)]

    /// "96 opus/48000" for each.
    var names: [String] { map { "\($0.payloadType) \($0.encodingName)/\($0.clockRate)" } }
}

extension SessionConfiguration {
    static func audio(
        _ formats: [PayloadFormat] = .phone,
        address: String = "192.0.2.1",
        port: UInt16 = 40000,
        _ change: (inout MediaConfiguration) -> Void = { _ in }
    ) -> SessionConfiguration {
        var medium = MediaConfiguration(port: port, formats: formats)
        change(&medium)
        return SessionConfiguration(address: address, media: [medium])
    }
}

extension OfferAnswer {
    init(_ configuration: SessionConfiguration, id: UInt64 = 1) {
        self.init(configuration: configuration, sessionID: id)
    }

    /// Takes `offer` and answers it.
    mutating func answer(_ offer: SessionDescription) throws(SDPError) -> SessionDescription {
        try receiveOffer(offer)
        return try makeAnswer()
    }

    /// Takes the description that `lines` write, and answers it.
    mutating func answer(_ lines: String) throws(SDPError) -> SessionDescription {
        try answer(SessionDescription(parsing: lines))
    }

    /// Offers to `other`, takes its answer, and tells what changed on this side.
    @discardableResult
    mutating func exchange(
        with other: inout OfferAnswer,
        _ scope: Scope = .everything
    ) throws(SDPError) -> Set<MediaChange> {
        let before = agreed
        let offer = try makeOffer(scope)
        try receiveAnswer(other.answer(offer))
        return Set(agreed?.changes(since: before).values.joined().map { $0 } ?? [])
    }
}

/// What a call throws; nil when it throws nothing.
func failure<Value>(_ body: () throws(SDPError) -> Value) -> SDPError? {
    do throws(SDPError) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}
