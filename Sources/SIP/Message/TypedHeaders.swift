/// The headers of a message that tell its transaction, its dialog and its place there, as they were read.
///
/// It is shared by the copies of a message.
final class TypedHeaders: Sendable {
    let topVia: Via
    /// Where the topmost Via stood: once another stands on top, that is read.
    let viaRange: ByteRange
    let from: NameAddress
    let to: NameAddress
    let cSeq: CSeq

    init(topVia: Via, at viaRange: ByteRange, from: NameAddress, to: NameAddress, cSeq: CSeq) {
        (self.topVia, self.viaRange) = (topVia, viaRange)
        (self.from, self.to, self.cSeq) = (from, to, cSeq)
    }
}
