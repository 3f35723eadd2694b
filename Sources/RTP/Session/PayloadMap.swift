/// What packets of each payload type hold, and how fast their time stamps count.
///
/// Source: RFC 3550, section 5.1
package struct PayloadMap: Sendable, BitwiseCopyable {
    /// What a packet holds.
    package enum Kind: UInt8, Sendable, BitwiseCopyable {
        /// Nothing that was announced.
        case unknown
        /// A codec's sound.
        case audio
        /// Telephone events (RFC 4733), whose time stamps stand still.
        case telephoneEvent
        /// Comfort noise (RFC 3389).
        case comfortNoise
        /// Redundant audio (RFC 2198), which counts as what its primary block holds.
        case redundantAudio
    }

    /// Kind in the highest byte, clock rate in Hz below.
    private var entries = InlineArray<128, UInt32>(repeating: 0)

    /// A map in which every type is unknown.
    package init() {}

    /// Announces that packets of `payloadType`, 0 to 127, hold `kind`, with time stamps at `clockRate` Hz, below 2^24.
    package mutating func set(_ payloadType: UInt8, _ kind: Kind, clockRate: UInt32) {
        precondition(payloadType < 128 && clockRate < 1 << 24)
        entries[Int(payloadType)] = UInt32(kind.rawValue) << 24 | clockRate
    }

    /// What packets of `payloadType` hold, and how fast their time stamps count, in Hz; 0 for unknown ones.
    ///
    /// It changes nothing. An element of an array that cannot change is read from a copy of the whole, as of Swift 6.3.
    package mutating func content(of payloadType: UInt8) -> (kind: Kind, clockRate: UInt32) {
        let entry = entries[Int(payloadType & 0x7F)]
        return (Kind(rawValue: UInt8(entry >> 24)) ?? .unknown, entry & 0xFF_FFFF)
    }

    /// Whether redundant audio may come.
    package var hasRedundancy: Bool {
        var map = self
        return (UInt8(0)..<128).contains { map.content(of: $0).kind == .redundantAudio }
    }
}
