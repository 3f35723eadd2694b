/// Which way media flows, seen from who says so.
///
/// Source: RFC 8866, section 6.7; RFC 3264, section 5.1.
public enum MediaDirection: String, Sendable, CaseIterable {
    /// Both ways.
    case sendReceive = "sendrecv"
    /// From the one who says so.
    case sendOnly = "sendonly"
    /// To the one who says so.
    case receiveOnly = "recvonly"
    /// Neither way.
    case inactive

    /// The direction in which the given ways are open.
    package init(sends: Bool, receives: Bool) {
        switch (sends, receives) {
        case (true, true): self = .sendReceive
        case (true, false): self = .sendOnly
        case (false, true): self = .receiveOnly
        case (false, false): self = .inactive
        }
    }

    /// The direction that `name` writes, in whatever case.
    init?(_ name: Bytes) {
        if name.isNamed("sendrecv") {
            self = .sendReceive
        } else if name.isNamed("sendonly") {
            self = .sendOnly
        } else if name.isNamed("recvonly") {
            self = .receiveOnly
        } else if name.isNamed("inactive") {
            self = .inactive
        } else {
            return nil
        }
    }

    /// Whether media leaves the one who says so.
    package var sends: Bool { self == .sendReceive || self == .sendOnly }

    /// Whether media comes to the one who says so.
    package var receives: Bool { self == .sendReceive || self == .receiveOnly }

    /// The same, seen from the other side.
    var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

    /// The ways that are open in both.
    func intersection(_ other: MediaDirection) -> MediaDirection {
        MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
    }
}
