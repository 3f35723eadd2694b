internal import CLibSSL
package import SDP

/// Who begins a handshake.
///
/// Source: RFC 5763, section 5.
package enum DTLSRole: Sendable {
    /// Sends the first datagram: DTLS's client.
    case active
    /// Waits for it: DTLS's server.
    case passive
}

/// A DTLS 1.2 association with one peer, whose handshake yields the keys of SRTP.
///
///     receive(datagram) ─┐                  ┌─ takeDatagrams()
///     handleTimeout()   ─┼─ DTLSAssociation ─┼─ state
///     close()           ─┘                  └─ timeout
///
/// After each call, what `takeDatagrams` returns is to be sent. It lives as long as the keys are in use: a peer that
/// has lost the last flight asks for it again. A datagram that is cut, or of another protocol, is ignored; before the
/// handshake is over a forged one that looks right can end it, as in any DTLS.
/// The library has a clock of its own for retransmission, the system's: time cannot be given to it.
/// Thread: any, one at a time; never the media thread.
/// Source: RFC 5763, RFC 5764, RFC 8842, RFC 6347.
package struct DTLSAssociation: ~Copyable, @unchecked Sendable {
    /// How far it is.
    package enum State: Sendable {
        case connecting
        case connected(DTLSKeys)
        case failed(DTLSError)
        /// Either side has ended it.
        case closed
    }

    package private(set) var state = State.connecting
    private let session: OpaquePointer
    private let role: DTLSRole
    private let datagrams = DTLSDatagrams()
    private let check: CertificateCheck

    /// Begins one; an active one has its first flight to send at once.
    ///
    /// - Parameters:
    ///   - identity: What the peer is shown.
    ///   - role: As the descriptions have agreed on it.
    ///   - fingerprints: The peer's; its certificate has to fit one of them.
    /// - Throws: `noUsableFingerprint`, or `noCertificate` when there is no memory.
    package init(_ identity: DTLSIdentity, role: DTLSRole, fingerprints: [Fingerprint]) throws(DTLSError) {
        let check = try CertificateCheck(fingerprints)
        guard let session = identity.makeSession() else { throw .noCertificate("out of memory") }
        guard datagrams.attach(to: session) else {
            SSL_free(session)
            throw .noCertificate("out of memory")
        }
        (self.session, self.role, self.check) = (session, role, check)
        check.attach(to: session)
        DTLS_set_timer_cb(session) { _, microseconds in
            microseconds == 0 ? DTLSAssociation.firstTimeout : min(microseconds / 5 * 8, DTLSAssociation.lastTimeout)
        }
        switch role {
        case .active:
            SSL_set_connect_state(session)
            advance()
        case .passive: SSL_set_accept_state(session)
        }
    }

    deinit { SSL_free(session) }

    /// Takes what the peer has sent, whatever it is.
    package mutating func receive(_ datagram: Span<UInt8>) {
        datagram.withUnsafeBytes { bytes in
            datagrams.receive(bytes) { advance() }
        }
    }

    /// Sends the last flight again, if that is due.
    package mutating func handleTimeout() {
        guard case .connecting = state else { return }
        ERR_clear_error()
        if dtls_handle_timeout(session) < 0 { state = .failed(failure) }
    }

    /// Ends it; a peer that is connected is told.
    package mutating func close() {
        switch state {
        case .connecting: state = .closed
        case .connected: endConnection()
        case .failed, .closed: break
        }
    }

    /// What is to be sent, in order.
    package mutating func takeDatagrams() -> [[UInt8]] { datagrams.takeOutgoing() }

    /// How long, from now, until `handleTimeout` is to be called; nil when it is not.
    package var timeout: Duration? {
        guard case .connecting = state else { return nil }
        let microseconds = dtls_timeout(session)
        return microseconds < 0 ? nil : .microseconds(microseconds)
    }

    // MARK: Handshake

    /// Lets the library read all that is there, and answer it.
    private mutating func advance() {
        if case .connecting = state {
            ERR_clear_error()
            let result = SSL_do_handshake(session)
            guard result == 1 else { return judge(result) }
            finishHandshake()
        }
        // What is behind the handshake: peers send nothing here but their last flight again, and the end.
        while case .connected = state {
            ERR_clear_error()
            let result = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
                SSL_read(session, buffer.baseAddress, CInt(buffer.count))
            }
            guard result > 0 else { return judge(result) }
        }
    }

    private mutating func finishHandshake() {
        guard case .fits(let fingerprint) = check.outcome,
            let keys = DTLSKeys(exportedFrom: session, role: role, fingerprint: fingerprint)
        else {
            SSL_shutdown(session)
            state = .failed(.noProfile)
            return
        }
        datagrams.filter.isConnected = true
        if SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(session)) == NID_chacha20_poly1305 {
            datagrams.filter.leastByteCount = 16
        }
        state = .connected(keys)
    }

    /// What a call without success means.
    private mutating func judge(_ result: CInt) {
        switch SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
        case SSL_ERROR_ZERO_RETURN: endConnection()
        default: state = .failed(failure)
        }
    }

    private mutating func endConnection() {
        ERR_clear_error()
        if SSL_is_init_finished(session) == 1 { SSL_shutdown(session) }
        state = .closed
    }

    /// The first error in the library's queue is the reason, those behind it its consequences.
    private var failure: DTLSError {
        if case .refused(let error) = check.outcome { return error }
        let code = ERR_peek_error()
        let reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0
        if reason == SSL_R_READ_TIMEOUT_EXPIRED { return .timedOut }
        if reason >= SSL_AD_REASON_OFFSET, let alert = SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET) {
            return .alert(String(cString: alert))
        }
        return .protocolFailure(ERR_reason_error_string(code).map { String(cString: $0) } ?? "unknown reason")
    }

    /// Microseconds; each timeout is 1.6 times the one before: calls wait for it, where many datagrams are lost, too.
    private static let firstTimeout: UInt32 = 50_000
    private static let lastTimeout: UInt32 = 3_000_000
}
