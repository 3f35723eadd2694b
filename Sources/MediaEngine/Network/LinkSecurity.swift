/// What encrypts and signs the datagrams of one leg, and gives only those of the other side that are authentic.
///
/// Keys are its own affair: while it has none, nothing is sent, and nothing is given.
package protocol LinkSecurity: AnyObject, Sendable {
    /// A link over `base`: of RTP, and of RTCP where that shares its port; or of RTCP that has a port of its own.
    func secured(_ base: any DatagramLink, isOfControl: Bool) -> any DatagramLink
}
