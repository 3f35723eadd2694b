internal import CLibSSL
import Glibc
import Synchronization

/// Where the secrets of this process's handshakes are written, for programs that show what was captured; nowhere unless asked for.
///
///     CLIENT_RANDOM <random of the ClientHello, 32 bytes in hex> <master secret, 48 bytes in hex>
///
/// The keys of the sound follow from it: whoever reads it, and has the packets, can hear the calls.
/// Thread: any but that of media.
/// Source: RFC 9850.
package final class KeyLog: Sendable {
    package static let shared = KeyLog()

    private let descriptor = Mutex<Int32?>(nil)

    /// Has a line written for each handshake from now on, to the end of an open file; nil ends that.
    package func write(to descriptor: Int32?) { self.descriptor.withLock { $0 = descriptor } }

    /// Writes a line; one that finds no room on the disk is lost.
    fileprivate func append(_ line: UnsafePointer<CChar>) {
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            let bytes = String(cString: line) + "\n"
            _ = bytes.utf8.withContiguousStorageIfAvailable { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        }
    }
}

extension KeyLog {
    /// Has the library tell it of all sessions of `context`.
    static func listen(to context: OpaquePointer) {
        SSL_CTX_set_keylog_callback(context) { _, line in
            if let line { KeyLog.shared.append(line) }
        }
    }
}
