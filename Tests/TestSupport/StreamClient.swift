import Glibc
import Testing

/// A connection by TCP to a port of 127.0.0.1, whose calls block.
public final class StreamClient: Sendable {
    private let descriptor: CInt

    /// Connects.
    ///
    /// - Throws: What `#require` does, when nobody listens there
    public init(to port: UInt16) throws {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        (address.sin_port, address.sin_addr.s_addr) = (port.bigEndian, UInt32(0x7F00_0001).bigEndian)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) }
        }
        try #require(status == 0, "nobody listens at port \(port)")
    }

    deinit { close(descriptor) }

    /// Sends UTF-8.
    public func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends bytes.
    public func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) }

    /// All that comes until the other side closes, or `count` bytes.
    public func read(_ count: Int = .max) -> String { String(decoding: readBytes(count), as: UTF8.self) }

    /// The same as bytes.
    public func readBytes(_ count: Int = .max) -> [UInt8] {
        var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        while all.count < count {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            all += buffer[..<count]
        }
        return all
    }
}
