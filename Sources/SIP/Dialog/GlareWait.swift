/// How long a side waits after 491 before it offers again: each side in a range of its own, so that they do not meet twice.
///
/// Source: RFC 3261, section 14.1
package enum GlareWait {
    /// A wait in steps of 10 ms; the owner is the side that made the dialog's Call-ID.
    package static func draw(isOwner: Bool, _ generator: inout some RandomNumberGenerator) -> Duration {
        let steps = isOwner ? 210...400 : 0...200
        return .milliseconds(10 * Int64(Int.random(in: steps, using: &generator)))
    }
}
