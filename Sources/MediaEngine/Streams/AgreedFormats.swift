import CallBasics
package import RTP
import SDP

/// A `MediaAgreement` with its codecs found: what each payload type means, both ways.
package struct AgreedFormats: Sendable {
    /// The codec that is sent, or one that stands in for it while nothing is agreed.
    let codec: any AudioCodec
    /// The payload type that it is sent with.
    let payloadType: UInt8
    /// The codecs that are taken, by the payload types that they come with; the first is `codec`.
    let taken: [(codec: any AudioCodec, payloadType: UInt8)]
    let send: SendFormats
    package let payloads: PayloadMap
    /// The clock rate of comfort noise; nil where none is taken.
    let comfortNoiseClockRate: Int?

    /// Finds the codecs of `agreement`.
    ///
    /// - Parameters:
    ///   - agreement: What was agreed.
    ///   - standIn: Gives the codec that stands in while nothing is agreed.
    ///   - find: Finds a codec by its name.
    /// - Throws: `CodecError` when a codec is unknown, lacks a payload type, or one number means two things.
    init(
        _ agreement: MediaAgreement,
        standIn: () -> (any AudioCodec)?,
        find: (String) throws(CodecError) -> any AudioCodec
    ) throws(CodecError) {
        guard let agreed = agreement.codec else {
            guard let codec = standIn() else {
                throw CodecError(.unknownCodec, "No codec is enabled. Load one before a call is made.")
            }
            self = Self(nothingWith: codec)
            return
        }
        let codec = try find(agreed.name)
        let main = codec.description
        payloadType = agreed.payloadType ?? main.staticPayloadType ?? 96
        var taken = [(codec: codec, payloadType: agreed.receivedPayloadType ?? payloadType)]
        for other in agreement.acceptedCodecs {
            let codec = try find(other.name)
            guard let type = other.receivedPayloadType ?? other.payloadType ?? codec.description.staticPayloadType
            else {
                throw CodecError(
                    .unsupportedConfiguration,
                    "\(other.name) is accepted and has no payload type of its own. Name one."
                )
            }
            taken.append((codec, type))
        }
        self.codec = codec
        self.taken = taken
        let rate = UInt32(main.clockRate)
        var send = SendFormats(clockRate: rate)
        send.redPayloadType = agreement.redPayloadType
        if let events = agreement.telephoneEvents {
            send.eventPayloadType = events.payloadType
            send.eventClockRate = events.clockRate.map { UInt32(clamping: $0) } ?? rate
            guard send.eventClockRate >= 1000 else {
                throw CodecError(
                    .unsupportedConfiguration,
                    "Telephone events have a clock of \(send.eventClockRate) Hz. Give that of the codec."
                )
            }
        }
        self.send = send

        var types = taken.map(\.payloadType)
        var kinds: [(UInt8, PayloadMap.Kind, UInt32)] = taken.map {
            ($0.payloadType, .audio, UInt32($0.codec.description.clockRate))
        }
        func add(_ type: UInt8, _ kind: PayloadMap.Kind, _ clockRate: UInt32) {
            types.append(type)
            kinds.append((type, kind, clockRate))
        }
        if let events = agreement.telephoneEvents {
            add(events.receivedPayloadType ?? events.payloadType, .telephoneEvent, send.eventClockRate)
            for (type, rate) in events.furtherReceived { add(type, .telephoneEvent, UInt32(clamping: rate)) }
        }
        if let type = agreement.redPayloadType {
            add(agreement.receivedREDPayloadType ?? type, .redundantAudio, rate)
        }
        comfortNoiseClockRate = Self.comfortNoise(agreement, taken.map(\.codec.description))
        if let type = agreement.comfortNoisePayloadType, let noiseRate = comfortNoiseClockRate {
            add(type, .comfortNoise, UInt32(noiseRate))
        }
        guard Set(types).count == types.count, types.allSatisfy({ $0 < 128 }), payloadType < 128 else {
            throw CodecError(
                .unsupportedConfiguration,
                "The same payload type stands for two kinds of packets, or one is above 127. Give codecs, telephone "
                    + "events, RED and comfort noise a number of their own, dynamic ones from 96 to 127."
            )
        }
        var payloads = PayloadMap()
        for (type, kind, rate) in kinds { payloads.set(type, kind, clockRate: min(rate, 0xFF_FFFF)) }
        self.payloads = payloads
    }

    private init(nothingWith codec: any AudioCodec) {
        self.codec = codec
        payloadType = codec.description.staticPayloadType ?? 96
        taken = [(codec, payloadType)]
        send = SendFormats(clockRate: UInt32(codec.description.clockRate))
        payloads = PayloadMap()
        comfortNoiseClockRate = nil
    }

    private static func comfortNoise(_ agreement: MediaAgreement, _ codecs: [CodecDescription]) -> Int? {
        guard let type = agreement.comfortNoisePayloadType else { return nil }
        let clockRate = type == 13 ? 8000 : codecs[0].clockRate
        return codecs.contains { $0.clockRate == clockRate } ? clockRate : nil
    }
}

extension MediaAgreement {
    /// The addresses, as a session takes them.
    ///
    /// - Parameters:
    ///   - hasControlPort: Whether this side has a port for RTCP.
    ///   - local: Where this side takes RTP; link-local addresses are on its interface.
    /// - Returns: The addresses.
    func addresses(hasControlPort: Bool, local: SocketAddress) -> RTPAddresses {
        var addresses = RTPAddresses()
        let remote = remote?.scoped(as: local)
        addresses.destination = remote
        addresses.controlDestination =
            remoteControl?.scoped(as: local) ?? remote.map { $0.with(port: $0.port &+ 1) }
        addresses.isSymmetric = isSymmetric
        addresses.isMultiplexed = multiplexesControl || !hasControlPort
        addresses.sourceRules = sourceRules
        addresses.expectsPackets = codec != nil && direction.receives
        addresses.sourceNumber = sourceNumber
        return addresses
    }
}
