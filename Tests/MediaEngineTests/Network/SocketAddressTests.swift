import Glibc
@testable import MediaEngine
import SDP
import Testing

@Suite struct SocketAddressTests {
    @Test(arguments: ["127.0.0.1", "192.0.2.255", "::1", "2001:db8::1:0:0:7"]) func `text and back`(host: String) throws
    {
        let address = try #require(SocketAddress(host: host, port: 5004))
        #expect(address.host == host)
        #expect(address.isIPv4 == host.contains("."))
        #expect(address.description == (host.contains(".") ? "\(host):5004" : "[\(host)]:5004"))
    }

    @Test(arguments: ["", "localhost", "1.2.3", "1.2.3.256", ":::"]) func `what is no address is refused`(host: String)
    {
        #expect(SocketAddress(host: host, port: 1) == nil)
    }

    @Test(arguments: [
        ("10.0.0.0", true), ("10.255.255.255", true), ("9.255.255.255", false), ("11.0.0.0", false),
        ("172.16.0.0", true), ("172.31.255.255", true), ("172.15.255.255", false), ("172.32.0.0", false),
        ("192.168.0.0", true), ("192.168.255.255", true), ("192.167.255.255", false), ("192.169.0.0", false),
        ("100.64.0.0", true), ("100.127.255.255", true), ("100.63.255.255", false), ("100.128.0.0", false),
        ("169.254.1.1", true), ("198.51.100.1", false), ("127.0.0.1", false),
        ("fc00::1", true), ("fdff::1", true), ("fe80::1", true), ("2001:db8::1", false), ("fec0::1", false),
        ("::1", false),
    ])
    func `addresses of private networks are known`(host: String, isPrivate: Bool) throws {
        #expect(try #require(SocketAddress(host: host, port: 1)).isPrivate == isPrivate)
    }

    @Test func `the direction tells whether packets are expected`() {
        let local = SocketAddress.loopback(port: 1)
        func expects(_ change: (inout MediaAgreement) -> Void) -> Bool {
            var agreement = MediaAgreement()
            change(&agreement)
            return agreement.addresses(hasControlPort: false, local: local).expectsPackets
        }
        #expect(expects { $0.direction = .sendReceive } && expects { $0.direction = .receiveOnly })
        #expect(!expects { $0.direction = .sendOnly } && !expects { $0.direction = .inactive })
        #expect(!expects { $0.codec = nil })
    }

    @Test func `the interface of a link-local address is kept`() throws {
        let index = if_nametoindex("lo")
        let named = try #require(SocketAddress(host: "fe80::1%lo", port: 5004))
        #expect(named.scope == index && named.host == "fe80::1%lo")
        #expect(named.description == "[fe80::1%lo]:5004")
        #expect(named.with(port: 9).scope == index)
        #expect(SocketAddress(host: "fe80::1%\(index)", port: 5004) == named)
        // The same address on another link is another host.
        #expect(SocketAddress(host: "fe80::1%\(index + 1000)", port: 5004) != named)
        #expect(SocketAddress(host: "fe80::1", port: 5004) != named)
        #expect(SocketAddress(host: "fe80::1%", port: 1) == nil)
        #expect(SocketAddress(host: "fe80::1%nosuchlink", port: 1) == nil)
    }

    @Test(arguments: ["127.0.0.1", "192.0.2.255", "::1", "2001:db8::1:0:0:7", "fe80::1:2%7"])
    func `to a socket's address and back`(host: String) throws {
        let address = try #require(SocketAddress(host: host, port: 0x1234))
        var system = sockaddr_in6()
        let family = address.withSystemAddress { source, byteCount in
            withUnsafeMutableBytes(of: &system) { target in
                target.copyMemory(from: UnsafeRawBufferPointer(start: source, count: Int(byteCount)))
            }
            return Int32(source.pointee.sa_family)
        }
        #expect(family == (address.isIPv4 ? AF_INET : AF_INET6))
        #expect(UInt16(bigEndian: system.sin6_port) == 0x1234)
        if !address.isIPv4 { #expect(system.sin6_scope_id == address.scope) }
        #expect(SocketAddress(&system) == address)
    }

    @Test func `a link-local address of a description is on the interface of the call's own address`() throws {
        func address(_ host: String, _ port: UInt16 = 5004) throws -> SocketAddress {
            try #require(SocketAddress(host: host, port: port))
        }
        var agreement = MediaAgreement()
        agreement.multiplexesControl = false
        agreement.remote = try address("fe80::9")
        let local = try address("fe80::1%7")
        var addresses = agreement.addresses(hasControlPort: true, local: local)
        #expect(try addresses.destination == address("fe80::9%7"))
        #expect(try addresses.controlDestination == address("fe80::9%7", 5005))
        agreement.remoteControl = try address("fe80::8")
        addresses = agreement.addresses(hasControlPort: true, local: local)
        #expect(try addresses.controlDestination == address("fe80::8%7"))
        // What has an interface keeps it, and what needs none gets none.
        for host in ["fe80::9%3", "2001:db8::9", "::1", "192.0.2.1"] {
            agreement.remote = try address(host)
            #expect(agreement.addresses(hasControlPort: true, local: local).destination == agreement.remote)
        }
        // The whole of fe80::/10, and no more.
        #expect(try address("febf::1").isLinkLocal)
        #expect(try !address("fec0::1").isLinkLocal && !address("fe7f::1").isLinkLocal)
    }
}
