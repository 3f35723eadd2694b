internal import COpenSSL

/// Bytes that are wiped when nobody has them any more, and that no description shows.
package final class SecretBytes: Sendable, CustomStringConvertible, CustomReflectable {
    /// Written by nobody after `init`.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer

    /// What `body` writes into so many bytes, which are 0 before.
    package init(count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
        memory = .allocate(byteCount: count, alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        body(memory)
    }

    package convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    deinit {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        memory.deallocate()
    }

    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

    package var description: String { "\(memory.count) secret bytes" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Whether both are the same; how long that takes says nothing of where they differ.
package func isSameSecret(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    one.count == other.count && CRYPTO_memcmp(one.baseAddress, other.baseAddress, one.count) == 0
}

/// Whether both are the same; how long that takes says nothing of where they differ.
package func isSameSecret(_ one: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
    Array(one).withUnsafeBytes { one in Array(other).withUnsafeBytes { isSameSecret(one, $0) } }
}
