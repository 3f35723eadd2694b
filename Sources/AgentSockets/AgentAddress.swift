internal import CallBasics
internal import Glibc

/// Where an agent is, and what it speaks.
///
///     ws://127.0.0.1:8765/ws              WebSocket, Twilio's format
///     wss://bot.example.com/twilio        the same by TLS, with a certificate for that name
///     audiosocket:127.0.0.1:9092          Asterisk's AudioSocket, TCP
///     audiosocket:/run/agent.sock         the same by a Unix socket
public struct AgentAddress: Hashable, Sendable, CustomStringConvertible {
    /// How it is reached.
    package enum Way: Hashable, Sendable {
        /// A host and a port by TCP, with the path and query that are asked for; `isSecured` is TLS.
        case webSocket(host: String, port: UInt16, path: String, isSecured: Bool)
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    package let way: Way
    /// As it was written.
    public let description: String

    /// Reads an address.
    ///
    /// - Throws: `AgentError.Code.invalidAddress`
    public init(_ text: String) throws(AgentError) {
        guard let way = Self.way(text) else {
            throw AgentError(
                .invalidAddress,
                "'\(text.prefix { $0 != "?" })' is no address of an agent. Write ws://HOST:PORT/PATH, wss://..., audiosocket:HOST:PORT or "
                    + "audiosocket:/PATH."
            )
        }
        (self.way, description) = (way, text)
    }

    /// Where it is, without a path: there may be a key in one.
    package var place: String {
        switch way {
        case .webSocket(let host, let port, _, let isSecured):
            "\(isSecured ? "wss" : "ws")://\(Self.authority(host, port, or: nil))"
        case .tcp(let host, let port): Self.authority(host, port, or: nil)
        case .unix(let path): path
        }
    }

    /// Whether what is said to it goes through the network in the clear.
    public var isInTheClear: Bool {
        switch way {
        case .webSocket(let host, _, _, let isSecured): !isSecured && !Self.isLocal(host)
        case .tcp(let host, _): !Self.isLocal(host)
        case .unix: false
        }
    }

    private static func way(_ text: String) -> Way? {
        for (scheme, port, isSecured) in [("ws://", UInt16(80), false), ("wss://", 443, true)] {
            guard text.lowercased().hasPrefix(scheme) else { continue }
            let rest = text.dropFirst(scheme.count).prefix { $0 != "#" }
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            guard !authority.contains("@"), let (host, told) = hostAndPort(authority, or: port) else { return nil }
            let path = rest.dropFirst(authority.count)
            let isPlain = path.utf8.allSatisfy { 0x21...0x7E ~= $0 }
            guard isPlain else { return nil }
            return .webSocket(
                host: host,
                port: told,
                path: path.hasPrefix("/") ? String(path) : "/" + path,
                isSecured: isSecured
            )
        }
        guard text.hasPrefix("audiosocket:") else { return nil }
        let place = text.dropFirst("audiosocket:".count)
        if place.hasPrefix("/") {
            return place.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path)
                ? .unix(path: String(place)) : nil
        }
        return hostAndPort(place, or: nil).map { .tcp(host: $0, port: $1) }
    }

    /// `host:port`, `[v6]:port`, or without a port where there is a usual one.
    private static func hostAndPort(_ text: Substring, or usual: UInt16?) -> (String, UInt16)? {
        var (host, rest) = (text, Substring())
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            (host, rest) = (text[text.index(after: text.startIndex)..<end], text[text.index(after: end)...])
        } else if let colon = text.lastIndex(of: ":") {
            (host, rest) = (text[..<colon], text[colon...])
        }
        let isName = host.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
            case UInt8(ascii: ":"), UInt8(ascii: "%"): text.hasPrefix("[")
            default: false
            }
        }
        guard !host.isEmpty, isName else { return nil }
        if rest.isEmpty { return usual.map { (String(host), $0) } }
        guard rest.hasPrefix(":"), let port = UInt16(rest.dropFirst()), port > 0 else { return nil }
        return (String(host), port)
    }

    /// A host and its port, unless it is the usual one, as in an address.
    static func authority(_ host: String, _ port: UInt16, or usual: UInt16?) -> String {
        let shown = host.contains(":") ? "[\(host.prefix { $0 != "%" })]" : host
        return port == usual ? shown : "\(shown):\(port)"
    }

    private static func isLocal(_ host: String) -> Bool {
        host == "localhost" || SocketAddress(host: host, port: 0)?.isLoopback ?? false
    }
}
