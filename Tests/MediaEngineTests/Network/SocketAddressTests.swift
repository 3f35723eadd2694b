import Glibc
@testable import MediaEngine
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
}
