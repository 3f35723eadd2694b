import ArgumentParser
import CallCore
import MediaEngine
import Testing

@testable import media_tool

/// What a server of pages answers; no call comes about.
@Suite struct WebRTCDeskTests {
    private let desk: WebRTCDesk

    init() throws { desk = try Self.makeDesk() }

    private static func makeDesk(_ arguments: String...) throws -> WebRTCDesk {
        let options = try WebRTCOptions.parse(["--echo", "--media", "127.0.0.1"] + arguments)
        let teller = SIPTeller(isJSON: true, hasEvents: false)
        return WebRTCDesk(try CallEngine(.virtual()), options, ice: .lite, PageGate(), limit: 1, teller)
    }

    private func answer(
        _ method: String,
        _ path: String,
        type: String? = nil,
        _ body: String = ""
    ) async -> PageResponse {
        await desk.answer(
            PageRequest(method: method, path: path, host: "127.0.0.1:8080", contentType: type, body: body)
        )
    }

    @Test(arguments: [
        ("GET", "/", 200), ("HEAD", "/", 200), ("GET", "/call.js", 200), ("GET", "/call.css", 200), ("POST", "/", 405),
        ("OPTIONS", "/call", 200), ("GET", "/call", 405), ("PATCH", "/call", 405), ("POST", "/call", 415),
        ("DELETE", "/call/1", 404), ("PATCH", "/call/1", 404), ("POST", "/call/1/heard", 404), ("GET", "/nothing", 404),
        ("GET", "//call/../etc", 404),
    ])
    func `each request has its status`(method: String, path: String, status: Int) async {
        #expect(await answer(method, path).status == status)
    }

    @Test func `what may be asked for is told`() async {
        let options = await answer("OPTIONS", "/call")
        #expect(options.headers.contains { $0 == ("Accept-Post", "application/sdp") })
        #expect(await answer("GET", "/call").headers.contains { $0 == ("Allow", "POST, OPTIONS") })
    }

    @Test func `what is wrong on this side is not told to browsers`() async throws {
        let desk = try Self.makeDesk("--codec", "nosuch")
        let session = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
        let response = await desk.answer(
            PageRequest(
                method: "POST",
                path: "/call",
                host: "127.0.0.1:8080",
                contentType: "application/sdp",
                body: session + "m=audio 9 RTP/AVP 0\r\n"
            )
        )
        #expect(response.status == 500 && !response.body.contains("nosuch"), "\(response)")
    }

    @Test func `what is no offer, or none that can be taken, is refused, and uses up no call`() async {
        let session = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
        let lines =
            "a=fingerprint:sha-256 \([String](repeating: "07", count: 32).joined(separator: ":"))\r\na=setup:actpass\r\n"
        for (offer, status) in [
            ("", 400), ("nothing", 400), (session + "m=audio 9 RTP/AVP 0\r\n", 422),
            // Sound would go to whomever it names.
            (session + "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=rtcp-mux\r\n" + lines, 422),
        ] {
            let response = await answer("POST", "/call", type: "application/sdp", offer)
            #expect(response.status == status, "\(response)")
        }
    }
}
