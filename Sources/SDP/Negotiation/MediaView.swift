internal import CallBasics

/// One medium of an exchange, from both sides.
struct MediaView {
    let index: Int
    let local: MediaDescription
    let remote: MediaDescription
    let configuration: SessionConfiguration
    /// What was agreed for the same m= line before.
    let previous: AgreedMedia?

    /// What the exchange agrees on, in `pairs` of formats.
    func agreedMedia(_ entry: Int, _ pairs: [FormatPair], isOfferer: Bool) -> AgreedMedia {
        let wish = configuration.media[entry]
        let destination = Destination(remote)
        let isMultiplexed = local.isMultiplexed && remote.isMultiplexed
        let address = AgreedMedia.Address(host: local.host ?? configuration.address, port: local.port)
        let controlPort = isMultiplexed ? local.port : wish.controlPort ?? local.controlAddress.port
        var remoteAddress = destination.address
        var remoteControl = isMultiplexed ? destination.address : destination.controlAddress
        if destination.isHold, let previous {
            remoteAddress = previous.remote
            remoteControl = previous.remoteControl
        }
        let maximumTime = remote.maximumPacketTime
        let time = remote.packetTime ?? wish.packetTime
        return AgreedMedia(
            lineIndex: index,
            configurationIndex: entry,
            kind: remote.kind,
            transport: remote.transport,
            local: address,
            localControl: AgreedMedia.Address(host: address.host, port: controlPort),
            remote: remoteAddress,
            remoteControl: remoteControl,
            isMultiplexed: isMultiplexed,
            sending: AgreedMedia.Formats(pairs.map(\.theirs)),
            receiving: AgreedMedia.Formats(pairs.map(\.ours)),
            packetTime: time.map { min($0, maximumTime ?? $0) },
            maximumPacketTime: maximumTime,
            maximumBitRate: remote.maximumBitRate,
            direction: local.direction.intersection(destination.direction.reversed),
            isHeldLocally: configuration.hold != nil,
            isHeldRemotely: isHeldRemotely(destination, isOfferer: isOfferer),
            localSecurity: local.keyingAttributes,
            remoteSecurity: remote.keyingAttributes,
            keys: keys(isOfferer: isOfferer),
            association: remote.transport.usesDTLS
                ? AgreedAssociation(local.keyingAttributes, remote.keyingAttributes, isOfferer: isOfferer) : nil,
            ice: AgreedICE(
                local.keyingAttributes,
                remote,
                from: SocketAddress(host: configuration.address, port: 0),
                isMultiplexed: isMultiplexed,
                isOfferer: isOfferer,
                after: previous?.ice
            )
        )
    }

    private func keys(isOfferer: Bool) -> AgreedKeys? {
        guard remote.transport.hasKeysInDescription else { return nil }
        let (ours, theirs) = (local.keyingAttributes.cryptoLines, remote.keyingAttributes.cryptoLines)
        return AgreedKeys(ours, theirs, isOfferer: isOfferer)
    }

    /// Whether the other side wants no media from us.
    ///
    /// An offer says what it wishes. An answer says it only where our offer left the choice: one to "recvonly" or "inactive"
    /// cannot ask for our media.
    /// Source: RFC 6337, section 5.3.
    private func isHeldRemotely(_ destination: Destination, isOfferer: Bool) -> Bool {
        if destination.isHold { return true }
        guard isOfferer, !local.direction.sends else { return !destination.direction.receives }
        return previous?.isHeldRemotely ?? false
    }
}

/// Where media for the other side goes to, by its description.
struct Destination {
    /// Nil when its address is none that can be sent to.
    let address: AgreedMedia.Address?
    let controlAddress: AgreedMedia.Address?
    /// Whether it holds by the address 0.0.0.0, as was done before directions were known (RFC 3264, section 8.4).
    let isHold: Bool
    /// The direction that it wishes; a side without an address gets nothing.
    let direction: MediaDirection

    init(_ medium: MediaDescription) {
        let host = medium.host ?? ""
        let isNowhere = Self.isNowhere(host)
        // An agent that has not found its address yet writes the same, and tells candidates (RFC 8839, section 4.2.1).
        isHold = isNowhere && !medium.usesICE
        address = isNowhere ? nil : AgreedMedia.Address(host: host, port: medium.port)
        let control = medium.controlAddress
        let controlHost = control.host.flatMap { Self.isNowhere($0) ? nil : $0 } ?? host
        controlAddress = isNowhere ? nil : AgreedMedia.Address(host: controlHost, port: control.port)
        direction = MediaDirection(sends: medium.direction.sends, receives: medium.direction.receives && !isHold)
    }

    /// Source: RFC 3264, section 8.4; RFC 6157, section 4.2 (the name .invalid).
    private static func isNowhere(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) {
            return host.utf8.allSatisfy { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "0") }
        }
        return host.isEmpty || host == "0.0.0.0" || host.isNamed("invalid") || Bytes(host).suffix(8).isNamed(".invalid")
    }

    static func isMulticast(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) { return Bytes(host).prefix(2).isNamed("ff") }
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4, parts.allSatisfy({ Bytes($0).decimal(UInt8.self) != nil }) else { return false }
        return 224...239 ~= Bytes(parts[0]).decimal(UInt8.self) ?? 0
    }
}
