/// What protects one direction: session keys for RTP and RTCP, with what was agreed on about them.
///
/// Made, and used once, off the media thread, so that nothing is allocated on it.
/// Thread: any, one at a time.
package final class SRTPKeys: @unchecked Sendable {
    package var suite: SRTPSuite { master.suite }
    let master: SRTPMasterKey
    let media: SRTPSessionKey
    let control: SRTPSessionKey
    let identifier: [UInt8]
    /// What stands behind the text of a packet of RTP, and of RTCP.
    let mediaTrailer: SRTPTrailer.Layout
    let controlTrailer: SRTPTrailer.Layout
    let encryptsControl: Bool
    /// Packets of RTP that the key is good for.
    let lifetime: UInt64

    /// - Parameters:
    ///   - master: What both sides have agreed on.
    ///   - identifier: The master key identifier in each packet; empty for none.
    ///   - lifetime: How many packets of RTP the key is good for; nil for as many as the suite allows.
    ///   - encryptsControl: False where UNENCRYPTED_SRTCP was agreed on (RFC 4568, section 6.3.2).
    package init(
        _ master: SRTPMasterKey,
        identifier: [UInt8] = [],
        lifetime: UInt64? = nil,
        encryptsControl: Bool = true
    ) {
        self.master = master
        media = SRTPSessionKey(master, for: .media)
        control = SRTPSessionKey(master, for: .control)
        (self.identifier, self.encryptsControl) = (identifier, encryptsControl)
        mediaTrailer = SRTPTrailer.Layout(master.suite, for: .media, identifierByteCount: identifier.count)
        controlTrailer = SRTPTrailer.Layout(master.suite, for: .control, identifierByteCount: identifier.count)
        self.lifetime = min(lifetime ?? .max, PacketIndex.last)
        media.warmUp()
        control.warmUp()
    }
}

/// The keys of one direction as sender and receiver hold them: without counting references for each packet.
///
/// Thread: any, one at a time.
struct HeldKeys: ~Copyable {
    /// The keys, until the next `exchange`.
    private(set) var reference: Unmanaged<SRTPKeys>?

    init(_ keys: SRTPKeys?) { reference = keys.map { .passRetained($0) } }

    deinit { reference?.release() }

    /// Whether there are keys, made of the master key of `others`.
    func areOfMasterKey(of others: SRTPKeys) -> Bool {
        reference?._withUnsafeGuaranteedRef { others.master.equals($0.master) } ?? false
    }

    /// Holds `next`, and gives those back that it held.
    mutating func exchange(_ next: SRTPKeys) -> SRTPKeys? {
        defer { reference = .passRetained(next) }
        return reference?.takeRetainedValue()
    }
}
