/// What an attribute of STUN says, by its number.
///
/// Numbers below 0x8000 have to be understood by who takes the message; the others may be passed over.
/// Source: RFC 8489, section 18.3; RFC 8445, section 16.1; RFC 8656, section 18.
package struct STUNAttribute: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let mappedAddress = STUNAttribute(rawValue: 0x0001)
    package static let username = STUNAttribute(rawValue: 0x0006)
    package static let messageIntegrity = STUNAttribute(rawValue: 0x0008)
    package static let errorCode = STUNAttribute(rawValue: 0x0009)
    package static let unknownAttributes = STUNAttribute(rawValue: 0x000A)
    package static let channelNumber = STUNAttribute(rawValue: 0x000C)
    package static let lifetime = STUNAttribute(rawValue: 0x000D)
    package static let xorPeerAddress = STUNAttribute(rawValue: 0x0012)
    package static let data = STUNAttribute(rawValue: 0x0013)
    package static let realm = STUNAttribute(rawValue: 0x0014)
    package static let nonce = STUNAttribute(rawValue: 0x0015)
    package static let xorRelayedAddress = STUNAttribute(rawValue: 0x0016)
    package static let requestedAddressFamily = STUNAttribute(rawValue: 0x0017)
    package static let evenPort = STUNAttribute(rawValue: 0x0018)
    package static let requestedTransport = STUNAttribute(rawValue: 0x0019)
    package static let dontFragment = STUNAttribute(rawValue: 0x001A)
    package static let messageIntegritySHA256 = STUNAttribute(rawValue: 0x001C)
    package static let passwordAlgorithm = STUNAttribute(rawValue: 0x001D)
    package static let userHash = STUNAttribute(rawValue: 0x001E)
    package static let xorMappedAddress = STUNAttribute(rawValue: 0x0020)
    package static let reservationToken = STUNAttribute(rawValue: 0x0022)
    package static let priority = STUNAttribute(rawValue: 0x0024)
    package static let useCandidate = STUNAttribute(rawValue: 0x0025)
    package static let passwordAlgorithms = STUNAttribute(rawValue: 0x8002)
    package static let software = STUNAttribute(rawValue: 0x8022)
    package static let alternateServer = STUNAttribute(rawValue: 0x8023)
    package static let fingerprint = STUNAttribute(rawValue: 0x8028)
    package static let iceControlled = STUNAttribute(rawValue: 0x8029)
    package static let iceControlling = STUNAttribute(rawValue: 0x802A)

    /// Whether a message with it is refused by who does not know it.
    package var mustBeUnderstood: Bool { rawValue < 0x8000 }

    /// Those of the numbers that must be understood which are.
    static let understood: Set<STUNAttribute> = [
        .mappedAddress, .username, .messageIntegrity, .errorCode, .unknownAttributes, .channelNumber, .lifetime,
        .xorPeerAddress, .data, .realm, .nonce, .xorRelayedAddress, .requestedAddressFamily, .evenPort,
        .requestedTransport, .dontFragment, .messageIntegritySHA256, .passwordAlgorithm, .userHash, .xorMappedAddress,
        .reservationToken, .priority, .useCandidate,
    ]
}
