#pragma once
// SHA1_Init and its like are deprecated, and the only way to a HMAC that allocates nothing.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// A key of HMAC-SHA1 (RFC 2104), hashed as far as it is the same for all messages.
typedef struct {
    SHA_CTX inner, outer;
} hmac_sha1_key;

/// Takes a key of up to 64 bytes.
static inline void hmac_sha1_set(hmac_sha1_key *key, const uint8_t *bytes, size_t count) {
    uint8_t block[64];
    memset(block, 0x36, sizeof block);
    for (size_t i = 0; i < count; i++) block[i] ^= bytes[i];
    SHA1_Init(&key->inner);
    SHA1_Update(&key->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++) block[i] ^= 0x36 ^ 0x5C;
    SHA1_Init(&key->outer);
    SHA1_Update(&key->outer, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

/// Signs `message` with `end` behind it. Any thread; allocates nothing.
static inline void hmac_sha1_sign(const hmac_sha1_key *key, const void *message, size_t count, const void *end,
                                  size_t end_count, uint8_t *tag) {
    SHA_CTX state = key->inner;
    SHA1_Update(&state, message, count);
    SHA1_Update(&state, end, end_count);
    uint8_t digest[SHA_DIGEST_LENGTH];
    SHA1_Final(digest, &state);
    state = key->outer;
    SHA1_Update(&state, digest, sizeof digest);
    SHA1_Final(tag, &state);
}

/// Writes the tag of what has been encrypted. Any thread; allocates nothing.
///
/// It is what EVP_CTRL_AEAD_GET_TAG comes to, in half of its time.
static inline int gcm_get_tag(EVP_CIPHER_CTX *context, void *tag, size_t count) {
    OSSL_PARAM parameters[2] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, count), OSSL_PARAM_END};
    return EVP_CIPHER_CTX_get_params(context, parameters);
}

/// Prepares a context that decrypts for `gcm_begin_opening`; 1 when that was possible.
static inline int gcm_prepare_opening(EVP_CIPHER_CTX *context) {
    // How TLS begins: a part of the nonce that stays. What comes with a packet is put over it.
    uint8_t none[4] = {0};
    OSSL_PARAM parameters[2] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, none, sizeof none),
                                OSSL_PARAM_END};
    return EVP_CIPHER_CTX_set_params(context, parameters);
}

/// Says with which nonce of 96 bits the next text was encrypted, and what its tag has to be; 1 when both were taken.
///
/// It is what EVP_DecryptInit_ex and EVP_CTRL_AEAD_SET_TAG come to, in less than half of their time.
static inline int gcm_begin_opening(EVP_CIPHER_CTX *context, void *nonce, void *tag, size_t count) {
    OSSL_PARAM parameters[3] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, count),
                                OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, nonce, 12),
                                OSSL_PARAM_END};
    return EVP_CIPHER_CTX_set_params(context, parameters);
}
