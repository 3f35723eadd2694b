internal import COpenSSL

/// AES-GCM with one key: encrypts and signs in one go.
///
/// Thread: any, one at a time. Allocates nothing after `init`.
/// Source: RFC 5116, section 5.
package struct GaloisCipher: ~Copyable, @unchecked Sendable {
    private let sealing: OpaquePointer
    private let opening: OpaquePointer

    /// - Parameter key: 16 or 32 bytes.
    package init(key: UnsafeRawBufferPointer) {
        sealing = Cipher.gcm(key.count).context(key: key)
        opening = Cipher.gcm(key.count).context(key: key)
        // From here on it decrypts, with the key that it has.
        let isSet = EVP_DecryptInit_ex2(opening, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, nil)
        precondition(isSet == 1 && gcm_prepare_opening(opening) == 1, "libcrypto cannot decrypt by GCM")
    }

    deinit {
        EVP_CIPHER_CTX_free(sealing)
        EVP_CIPHER_CTX_free(opening)
    }

    /// Encrypts `text` in place and writes the tag of it, of `header` and of `word`, in network order, behind that.
    ///
    /// `nonce` has 96 bits, and never comes twice with one key.
    package func seal(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32?,
        nonce: UInt128,
        into tag: UnsafeMutableRawBufferPointer
    ) {
        var written: CInt = 0
        withUnsafeBytes(of: nonce.bigEndian) {
            _ = EVP_EncryptInit_ex2(sealing, nil, nil, $0.bytes?.advanced(by: 4), nil)
        }
        EVP_EncryptUpdate(sealing, nil, &written, header.bytes, CInt(header.count))
        if let word {
            withUnsafeBytes(of: word.bigEndian) { _ = EVP_EncryptUpdate(sealing, nil, &written, $0.bytes, 4) }
        }
        if !text.isEmpty { EVP_EncryptUpdate(sealing, text.bytes, &written, text.bytes, CInt(text.count)) }
        EVP_EncryptFinal_ex(sealing, tag.bytes, &written)
        gcm_get_tag(sealing, tag.baseAddress, tag.count)
    }

    /// Decrypts `text` in place; false when `tag` is not that of it, of `header` and of `word` behind that.
    package func open(
        _ text: UnsafeMutableRawBufferPointer,
        _ header: UnsafeRawBufferPointer,
        _ word: UInt32?,
        nonce: UInt128,
        tag: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var (written, number) = (CInt(0), nonce.bigEndian)
        let isBegun = withUnsafeMutableBytes(of: &number) { bytes in
            gcm_begin_opening(opening, bytes.baseAddress?.advanced(by: 4), tag.baseAddress, tag.count)
        }
        guard isBegun == 1 else { return false }
        EVP_DecryptUpdate(opening, nil, &written, header.bytes, CInt(header.count))
        if let word {
            withUnsafeBytes(of: word.bigEndian) { _ = EVP_DecryptUpdate(opening, nil, &written, $0.bytes, 4) }
        }
        if !text.isEmpty { EVP_DecryptUpdate(opening, text.bytes, &written, text.bytes, CInt(text.count)) }
        var rest: UInt8 = 0
        return EVP_DecryptFinal_ex(opening, &rest, &written) == 1
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var bytes: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate var bytes: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}
