#pragma once
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <sys/time.h>

// What libssl has as macros only, and functions with a variable number of arguments.

/// A new key on the curve P-256, for the caller to free.
static inline EVP_PKEY *p256_key_new(void) { return EVP_EC_gen("P-256"); }

/// DTLS 1.2 and later; no renegotiation, no resumption in any way, and nobody is asked for the size of datagrams.
/// A peer's certificates may have `certificate_limit` bytes together, and so may each message that comes in fragments.
static inline int dtls_context_restrict(SSL_CTX *context, long certificate_limit) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_QUERY_MTU);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, certificate_limit);
    return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION);
}

/// Datagrams have up to so many bytes.
static inline void dtls_set_datagram_limit(SSL *session, long byte_count) { SSL_set_mtu(session, byte_count); }

/// Microseconds until the timer of retransmission is due; -1 when none runs.
static inline int64_t dtls_timeout(SSL *session) {
    struct timeval left;
    if (DTLSv1_get_timeout(session, &left) != 1) return -1;
    return (int64_t)left.tv_sec * 1000000 + left.tv_usec;
}

/// Sends the last flight again if the timer is due; below 0 when it was the last time.
static inline long dtls_handle_timeout(SSL *session) { return DTLSv1_handle_timeout(session); }

/// Has `BIO_read` mean: nothing yet, ask again.
static inline void bio_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

/// Takes that back.
static inline void bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
