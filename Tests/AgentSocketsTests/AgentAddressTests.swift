import AgentSockets
import Testing

@Suite struct AgentAddressTests {
    private static let good: [(text: String, way: AgentAddress.Way, isInTheClear: Bool)] = [
        (
            "ws://127.0.0.1:8765/ws", .webSocket(host: "127.0.0.1", port: 8765, path: "/ws", isSecured: false),
            false
        ), ("ws://bot", .webSocket(host: "bot", port: 80, path: "/", isSecured: false), true),
        (
            "wss://bot.example.com/twilio?key=a/b",
            .webSocket(host: "bot.example.com", port: 443, path: "/twilio?key=a/b", isSecured: true), false
        ), ("WSS://bot:1?x=1#part", .webSocket(host: "bot", port: 1, path: "/?x=1", isSecured: true), false),
        ("ws://[::1]:9/a", .webSocket(host: "::1", port: 9, path: "/a", isSecured: false), false),
        ("ws://[2001:db8::1]", .webSocket(host: "2001:db8::1", port: 80, path: "/", isSecured: false), true),
        ("ws://localhost:65535", .webSocket(host: "localhost", port: 65_535, path: "/", isSecured: false), false),
        ("audiosocket:127.0.0.1:9092", .tcp(host: "127.0.0.1", port: 9092), false),
        ("audiosocket:agent.example.com:9092", .tcp(host: "agent.example.com", port: 9092), true),
        ("audiosocket:[fe80::1%eth0]:9092", .tcp(host: "fe80::1%eth0", port: 9092), true),
        ("audiosocket:/run/agent.sock", .unix(path: "/run/agent.sock"), false),
    ]

    @Test(arguments: good)
    func `an address says where the agent is, and what it speaks`(
        text: String,
        way: AgentAddress.Way,
        isInTheClear: Bool
    ) throws {
        let address = try AgentAddress(text)
        #expect(!address.place.contains("?") && !address.place.contains("@"))
        #expect(address.way == way && address.isInTheClear == isInTheClear && address.description == text)
    }

    @Test(arguments: [
        "", "ws:", "ws://", "ws:///path", "ws://:80", "ws://bot:", "ws://bot:0", "ws://bot:65536", "ws://bot:-1",
        "ws://bot:8a", "ws://user@bot", "ws://user:pass@bot/", "ws://bo t/", "ws://bot/a b", "ws://bot/\r\nX: y",
        "ws://bot/ä", "ws://::1:80", "ws://[::1", "ws://[::1]80", "ws://[]:80", "http://bot/", "audiosocket:",
        "audiosocket:bot", "audiosocket:bot:", "audiosocket:bot:0", "audiosocket:run/agent.sock", "bot:9092",
        "audiosocket:/" + String(repeating: "a", count: 107),
    ])
    func `what is none is refused with the ways to write one`(text: String) {
        let error = #expect(throws: AgentError.self) { try AgentAddress(text) }
        #expect(error?.code == .invalidAddress && error?.description.contains("Write ws://HOST:PORT/PATH") == true)
    }
}
