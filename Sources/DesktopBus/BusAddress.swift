/// Where a session bus listens.
///
/// Source: D-Bus Specification 0.43, "Server Addresses".
package enum BusAddress {
    /// The Unix sockets of the bus that the environment names, or the one at its usual place, each as an address of its own.
    ///
    /// Other transports are left out: they may look up names, or start programs.
    package static func session(environment: [String: String]) -> [String] {
        if let addresses = environment["DBUS_SESSION_BUS_ADDRESS"], !addresses.isEmpty { return parse(addresses) }
        return environment["XDG_RUNTIME_DIR"].map { ["unix:path=" + escape($0 + "/bus")] } ?? []
    }

    /// The Unix sockets among addresses such as `unix:path=/run/user/1000/bus,guid=…;tcp:host=…`.
    package static func parse(_ text: String) -> [String] {
        // A semicolon within a value is written as %3b.
        text.split(separator: ";").filter { $0.hasPrefix("unix:") }.map(String.init)
    }

    /// A value as an address has it: bytes that are not plain are written as `%XX`.
    static func escape(_ value: String) -> String {
        value.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."), UInt8(ascii: "*"):
                String(UnicodeScalar(byte))
            default: (byte < 16 ? "%0" : "%") + String(byte, radix: 16)
            }
        }.joined()
    }
}
