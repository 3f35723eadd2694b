import ArgumentParser
internal import Glibc
import MediaEngine

/// Where to send, written HOST:PORT; an IPv6 address stands in brackets.
struct HostPort: ExpressibleByArgument {
    let host: String
    let port: UInt16

    init?(argument: String) {
        guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...]),
            port > 0
        else { return nil }
        var host = argument[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty else { return nil }
        self.host = String(host)
        self.port = port
    }

    /// The address of the host, from numbers or by the system's resolver.
    ///
    /// - Throws: `ToolFailure` when the name has no address.
    func resolve() throws -> SocketAddress {
        if let address = SocketAddress(host: host, port: port) { return address }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        if code == 0, let first = list?.pointee, let name = first.ai_addr,
            getnameinfo(name, first.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
        {
            let numeric = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if let address = SocketAddress(host: numeric, port: port) { return address }
        }
        let reason = code == 0 ? "it has no address" : String(cString: gai_strerror(code))
        throw ToolFailure("The host \(host) was not found (\(reason)). Check its name, or give its address.")
    }
}
