package import CallBasics

/// What the kernel tells of the network of the machine.
///
/// Source: rtnetlink(7)
package enum RouteMessage: Hashable, Sendable {
    case link(LinkNotice)
    case address(AddressNotice)
    case route(RouteNotice)
    /// What decides which table of routes is asked has changed; VPNs do that.
    case rule
    /// Messages were lost: nothing that was told before need hold.
    case overrun
    /// A question was refused, with this errno.
    case refusal(Int32)
}

/// An interface as it is now.
package struct LinkNotice: Hashable, Sendable {
    package let interface: UInt32
    package let name: String
    package let isGone: Bool
    /// Whether it is switched on.
    package let isUp: Bool
    /// Whether packets can pass: there is a cable, or the radio is connected.
    package let isRunning: Bool

    package init(_ interface: UInt32, _ name: String, isGone: Bool = false, isUp: Bool, isRunning: Bool) {
        (self.interface, self.name) = (interface, name)
        (self.isGone, self.isUp, self.isRunning) = (isGone, isUp, isRunning)
    }
}

/// An address that an interface has now, or has no more.
package struct AddressNotice: Hashable, Sendable {
    package let interface: UInt32
    /// Without a port.
    package let address: SocketAddress
    package let isAdded: Bool
    /// Whether it must not be used yet, for others may have it (RFC 4862, section 5.4).
    package let isTentative: Bool
    /// Whether others were found to have it.
    package let isDuplicate: Bool
    /// Whether it is one of those that change each day (RFC 8981).
    package let isTemporary: Bool

    package init(
        _ address: SocketAddress,
        on interface: UInt32,
        isAdded: Bool,
        isTentative: Bool = false,
        isDuplicate: Bool = false,
        isTemporary: Bool = false
    ) {
        (self.interface, self.address, self.isAdded) = (interface, address, isAdded)
        (self.isTentative, self.isDuplicate, self.isTemporary) = (isTentative, isDuplicate, isTemporary)
    }
}

/// A route that is there now, or is no more.
package struct RouteNotice: Hashable, Sendable {
    package let isAdded: Bool
    /// Whether it leads to all that no other route leads to.
    package let isDefault: Bool
    /// Whether packets for one host are passed on or taken in; others are refused or go to many.
    package let isUsable: Bool
    /// Nil where it has several.
    package let interface: UInt32?
    /// The own address of what goes this way, without a port; nil where none is preferred.
    package let source: SocketAddress?

    package init(
        isAdded: Bool,
        isDefault: Bool,
        isUsable: Bool = true,
        interface: UInt32? = nil,
        source: SocketAddress? = nil
    ) {
        (self.isAdded, self.isDefault, self.isUsable) = (isAdded, isDefault, isUsable)
        (self.interface, self.source) = (interface, source)
    }
}
