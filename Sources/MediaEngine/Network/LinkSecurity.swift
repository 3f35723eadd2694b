/// What encrypts and signs the datagrams of one leg, and gives only those of the other side that are authentic.
///
/// Keys are its own affair: while it has none, nothing is sent, and nothing is given.
package protocol LinkSecurity: AnyObject, Sendable {
    /// A link over `base`, of RTP, of RTCP, or of both.
    func secured(_ base: any DatagramLink) -> any DatagramLink
}
