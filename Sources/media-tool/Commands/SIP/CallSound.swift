import CallBasics
import MediaEngine
import SDP

/// The seam between signalling and sound: the ports of one SIP call, what it offers, and the engine's call once both sides
/// have agreed.
actor CallSound {
    /// What is offered, or answered with.
    let session: SessionConfiguration
    private let engine: CallEngine
    private let reservation: MediaReservation
    private let ends: @Sendable (inout CallConfiguration) -> Void
    private let stream: AudioStreamConfiguration
    private(set) var call: Call?
    private(set) var agreed: AgreedMedia?

    /// Opens the ports of a call on an own address.
    ///
    /// - Parameters:
    ///   - engine: Makes the call.
    ///   - host: The own address.
    ///   - codecs: The preferred one first.
    ///   - packetTime: Audio per packet that is asked for, in ms.
    ///   - ends: Says where the call's sound comes from and goes to.
    /// - Throws: `EngineError` when there is no port or no such codec
    init(
        _ engine: CallEngine,
        at host: String,
        codecs: [String],
        packetTime: Int?,
        _ ends: @escaping @Sendable (inout CallConfiguration) -> Void
    ) async throws {
        var stream = AudioStreamConfiguration()
        stream.encoder.ptime = packetTime.map { .milliseconds($0) }
        let formats = try engine.registry.payloadFormats(for: codecs, encoder: stream.encoder)
        let address = SocketAddress(host: host, port: 0) ?? .loopback(port: 0)
        let reservation = try await engine.reserve(address, hasControlPort: true)
        var medium = MediaConfiguration(port: reservation.localAddress.port, formats: formats)
        medium.controlPort = reservation.localControlAddress?.port
        medium.packetTime = packetTime
        session = SessionConfiguration(address: host, media: [medium])
        (self.engine, self.reservation, self.stream, self.ends) = (engine, reservation, stream, ends)
    }

    /// Makes the engine's call, or changes it, to what was agreed.
    ///
    /// - Throws: `EngineError` when no sound was agreed that can flow
    func apply(_ session: AgreedSession) async throws {
        guard let media = session.audio else {
            throw ToolFailure("No sound was agreed: the other side refused it. Offer another --codec.")
        }
        let agreement = try MediaAgreement(media, in: engine.registry)
        agreed = media
        if let call { return try await call.update(agreement) }
        var configuration = CallConfiguration(network: .reserved(reservation))
        (configuration.agreement, configuration.stream) = (agreement, stream)
        configuration.name = "sip"
        ends(&configuration)
        call = try await engine.makeCall(configuration)
    }

    /// Ends the engine's call after so long a talk, and gives its report; nil when no sound ever flowed.
    func end(after talk: Duration) async throws -> CallReport? {
        guard let call else {
            reservation.release()
            return nil
        }
        try await call.end()
        let codec = agreed?.sending.codecs.first?.encodingName ?? ""
        var report = CallReport(
            codec: codec,
            mode: .udp,
            seconds: talk.roundedSeconds,
            legs: [call.report()],
            ticks: engine.tickReport
        )
        report.cards = engine.cardReports
        report.routeChanges = engine.routeChanges
        return report
    }

    /// Gives back what is heard.
    static func echo(_ configuration: inout CallConfiguration) {
        let format = AudioFormat(sampleRate: 48_000)
        let (mouth, ears) = (StreamSource(format: format), StreamSink(format: format))
        (configuration.source, configuration.sink) = (.stream(mouth), .stream(ears))
        // It ends with the call, which closes both.
        Task { for await block in ears { try? await mouth.write(block.samples) } }
    }
}
