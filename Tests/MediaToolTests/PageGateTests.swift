import Testing

@testable import media_tool

/// Who may ask a server of pages: its own page, and programs that are no browsers.
@Suite struct PageGateTests {
    private static func status(_ host: String?, _ page: String?, _ origin: String? = nil) -> Int? {
        let request = PageRequest(method: "POST", path: "/call", host: host, origin: page, body: "")
        return PageGate(origin: origin).refusal(of: request)?.status
    }

    @Test(arguments: ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "192.0.2.1", "localhost"])
    func `a page of this server, and a program, may ask`(host: String) {
        #expect(Self.status(host, "http://\(host)") == nil && Self.status(host, nil) == nil)
    }

    @Test(arguments: [
        "http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:8081", "http://127.0.0.1:8080.evil.example",
        "null",
    ])
    func `a page from elsewhere may not`(page: String) { #expect(Self.status("127.0.0.1:8080", page) == 403) }

    @Test(arguments: ["evil.example:8080", "127.0.0.1.evil.example", "", "localhost.evil.example:8080"])
    func `a name that may stand for anything is none of ours`(host: String) {
        #expect(Self.status(host, "http://\(host)") == 421)
        #expect(Self.status(nil, nil) == 421)
    }

    @Test func `the address of a proxy is ours where it is named`() {
        let origin = "https://phone.example"
        #expect(Self.status("phone.example", origin, origin) == nil && Self.status("phone.example", origin) == 421)
        #expect(Self.status("127.0.0.1:8080", origin, origin) == nil)
        #expect(Self.status("127.0.0.1:8080", "https://phone.example.evil.example", origin) == 403)
    }

    @Test func `what is no origin is told from one`() {
        #expect(PageGate.host(of: "https://phone.example:8443") == "phone.example:8443")
        for text in ["phone.example", "https://", "https://a/b", "ftp://a", ""] {
            #expect(PageGate.host(of: text) == nil)
        }
    }

    @Test(
        arguments: [("none", nil), ("same-origin", nil), ("cross-site", 403), ("same-site", 403)] as [(String, Int?)]
    )
    func `a page that calls at once is not opened by others`(site: String, status: Int?) {
        var request = PageRequest(method: "GET", path: "/", host: "127.0.0.1:8080", body: "")
        request.site = site
        #expect(PageGate().refusal(of: request)?.status == status)
        #expect(PageGate(origin: "https://phone.example").refusal(of: request) == nil)
    }
}
