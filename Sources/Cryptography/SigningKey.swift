internal import COpenSSL

/// A key of HMAC-SHA1, hashed as far as it is the same for all messages.
///
/// Thread: any. Allocates nothing after `init`, unlike OpenSSL's own HMAC, which does for each message.
/// Source: RFC 2104, section 4.
package struct SigningKey: ~Copyable, @unchecked Sendable {
    private let state: UnsafeMutablePointer<hmac_sha1_key>

    /// Bytes of a signature.
    package static let byteCount = 20

    /// - Parameter key: Up to 64 bytes.
    package init(_ key: UnsafeRawBufferPointer) {
        precondition(key.count <= 64)
        state = .allocate(capacity: 1)
        state.initialize(to: hmac_sha1_key())
        hmac_sha1_set(state, key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count)
    }

    deinit {
        OPENSSL_cleanse(state, MemoryLayout<hmac_sha1_key>.size)
        state.deallocate()
    }

    /// Writes the first bytes of the signature of `message` with `end`, in network order, behind it.
    package func sign(_ message: UnsafeRawBufferPointer, _ end: UInt32?, into tag: UnsafeMutableRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { whole in
            var word = (end ?? 0).bigEndian
            let bytes = whole.baseAddress?.assumingMemoryBound(to: UInt8.self)
            hmac_sha1_sign(state, message.baseAddress, message.count, &word, end == nil ? 0 : 4, bytes)
            tag.copyMemory(from: UnsafeRawBufferPointer(rebasing: whole[..<tag.count]))
        }
    }

    /// Whether `tag` is what `sign` writes.
    package func verifies(_ tag: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer, _ end: UInt32?) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: tag.count, alignment: 8) { own in
            sign(message, end, into: own)
            return isSameSecret(UnsafeRawBufferPointer(own), tag)
        }
    }
}
