internal import CallBasics
internal import Glibc
internal import SDP

/// A port of 127.0.0.1 that takes sound and throws it away, so that nobody who sends is told that it is closed.
final class SilentPort: Sendable {
    /// What is described of it: PCMU.
    let session: SessionConfiguration
    private let file: CInt

    /// Throws `network`.
    init() throws(TestingError) {
        let file = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        self.file = file
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutableBytes(of: &address) { bytes in
            guard let place = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return bind(file, place, length) == 0 && getsockname(file, place, &length) == 0
        }
        let port = UInt16(bigEndian: address.sin_port)
        let format = PayloadFormat(payloadType: 0, encodingName: "PCMU", clockRate: 8000)
        session = SessionConfiguration(address: "127.0.0.1", media: [MediaConfiguration(port: port, formats: [format])])
        guard file >= 0, isBound else {
            let reason = String(cString: strerror(errno))
            throw TestingError(.network, "No port of 127.0.0.1 can be opened for sound: \(reason).")
        }
    }

    /// Also where its making has failed.
    deinit { if file >= 0 { Glibc.close(file) } }
}
