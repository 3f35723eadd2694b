internal import Glibc

/// Where a bus listens: a Unix socket by path, or by a name without a file.
///
/// Source: D-Bus Specification 0.43, "Server Addresses".
enum DBusAddress: Hashable, Sendable {
    case path(String)
    case abstract(String)

    /// The Unix sockets among addresses such as `unix:path=/run/user/1000/bus,guid=…;tcp:host=…`.
    static func parse(_ text: String) -> [DBusAddress] {
        text.split(separator: ";").compactMap { address in
            guard address.hasPrefix("unix:") else { return nil }
            for pair in address.dropFirst("unix:".count).split(separator: ",") {
                guard let equals = pair.firstIndex(of: "="), let value = unescape(pair[pair.index(after: equals)...])
                else { continue }
                switch pair[..<equals] {
                case "path": return .path(value)
                case "abstract": return .abstract(value)
                default: continue
                }
            }
            return nil
        }
    }

    /// The session bus that the environment names, or the one at its usual place.
    static func session(environment: [String: String]) -> [DBusAddress] {
        if let addresses = environment["DBUS_SESSION_BUS_ADDRESS"], !addresses.isEmpty { return parse(addresses) }
        return environment["XDG_RUNTIME_DIR"].map { [.path($0 + "/bus")] } ?? []
    }

    /// Connects a socket; the caller closes it.
    ///
    /// - Throws: `NotificationError` with code `noBus`.
    func connect() throws(NotificationError) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A name without a file begins with a zero byte and has no zero at its end.
        let name: [UInt8] =
            switch self {
            case .path(let path): path.utf8 + [0]
            case .abstract(let name): [0] + name.utf8
            }
        guard name.count <= MemoryLayout.size(ofValue: address.sun_path) else {
            throw NotificationError(.noBus, "The address of the bus, \(self), is too long for a socket.")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw failure(errno) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, length) }
        }
        guard status == 0 else {
            let code = errno
            close(socket)
            throw failure(code)
        }
        return socket
    }

    private func failure(_ code: CInt) -> NotificationError {
        let reason = String(cString: strerror(code))
        return NotificationError(.noBus, "The bus at \(self) is not to be reached: \(reason). Start a desktop session.")
    }

    /// The text with `%XX` made bytes; nil where that is none.
    private static func unescape(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(Substring(rest.prefix(2)), radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
