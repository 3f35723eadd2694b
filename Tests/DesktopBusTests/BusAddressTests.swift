import Testing

@testable import DesktopBus

@Suite struct BusAddressTests {
    @Test(
        arguments: [
            ("unix:path=/run/user/1/bus,guid=12", ["unix:path=/run/user/1/bus,guid=12"]),
            ("tcp:host=h,port=1;unix:abstract=/tmp/a%20b;unixexec:path=sh", ["unix:abstract=/tmp/a%20b"]),
            ("autolaunch:;;unix:path=/a;unix:path=/b", ["unix:path=/a", "unix:path=/b"]), ("", []),
        ]
    )
    func `sockets are found in addresses, each by itself`(text: String, addresses: [String]) {
        #expect(BusAddress.parse(text) == addresses)
    }

    @Test func `without an address in the environment the bus is at its usual place`() {
        #expect(
            BusAddress.session(environment: ["XDG_RUNTIME_DIR": "/run/a;b ü"]) == ["unix:path=/run/a%3bb%20%c3%bc/bus"]
        )
        #expect(
            BusAddress.session(environment: ["XDG_RUNTIME_DIR": "/x", "DBUS_SESSION_BUS_ADDRESS": "tcp:host=h"]) == []
        )
        #expect(BusAddress.session(environment: [:]) == [])
    }
}
