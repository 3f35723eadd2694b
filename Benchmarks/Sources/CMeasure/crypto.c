#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// What libcrypto has, looked up once, so that the benchmarks link nothing of it.
typedef struct {
    void *(*make)(void);
    const void *(*counter)(void), *(*galois)(void);
    int (*begin)(void *, const void *, void *, const uint8_t *, const uint8_t *);
    int (*update)(void *, uint8_t *, int *, const uint8_t *, int);
    int (*finish)(void *, uint8_t *, int *);
    int (*control)(void *, int, int, void *);
    int (*hash_begin)(void *), (*hash_update)(void *, const void *, size_t), (*hash_finish)(uint8_t *, void *);
} crypto_functions;

static const crypto_functions *crypto(void) {
    static crypto_functions functions;
    static int state;
    if (state) return state > 0 ? &functions : NULL;
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    struct {
        const char *name;
        void **place;
    } all[] = {
        {"EVP_CIPHER_CTX_new", (void **)&functions.make},
        {"EVP_aes_128_ctr", (void **)&functions.counter},
        {"EVP_aes_128_gcm", (void **)&functions.galois},
        {"EVP_EncryptInit_ex", (void **)&functions.begin},
        {"EVP_EncryptUpdate", (void **)&functions.update},
        {"EVP_EncryptFinal_ex", (void **)&functions.finish},
        {"EVP_CIPHER_CTX_ctrl", (void **)&functions.control},
        {"SHA1_Init", (void **)&functions.hash_begin},
        {"SHA1_Update", (void **)&functions.hash_update},
        {"SHA1_Final", (void **)&functions.hash_finish},
    };
    state = library ? 1 : -1;
    for (size_t index = 0; state > 0 && index < sizeof all / sizeof *all; index++) {
        *all[index].place = dlsym(library, all[index].name);
        if (!*all[index].place) state = -1;
    }
    return state > 0 ? &functions : NULL;
}

enum { header_size = 12, counter_tag_size = 10, galois_tag_size = 16, get_tag = 0x10 };

int64_t measure_counter_mode(int count, int rounds) {
    const crypto_functions *crypt = crypto();
    if (!crypt) return -1;
    uint8_t key[16] = {1}, iv[16] = {0}, packet[2048] = {0}, digest[20], block[64];
    // Larger than a SHA_CTX, whose size is not told.
    _Alignas(16) uint8_t inner[256], outer[256], state[256];
    memset(block, 0x36, sizeof block);
    crypt->hash_begin(inner);
    crypt->hash_update(inner, block, sizeof block);
    memset(block, 0x5C, sizeof block);
    crypt->hash_begin(outer);
    crypt->hash_update(outer, block, sizeof block);
    void *context = crypt->make();
    crypt->begin(context, crypt->counter(), NULL, key, iv);
    int64_t start = measure_thread_cpu();
    for (int round = 0; round < rounds; round++) {
        int written;
        memcpy(iv + 8, &round, sizeof round);
        crypt->begin(context, NULL, NULL, NULL, iv);
        crypt->update(context, packet + header_size, &written, packet + header_size, count - header_size);
        memcpy(state, inner, sizeof state);
        crypt->hash_update(state, packet, count);
        crypt->hash_update(state, &round, 4);
        crypt->hash_finish(digest, state);
        memcpy(state, outer, sizeof state);
        crypt->hash_update(state, digest, sizeof digest);
        crypt->hash_finish(digest, state);
        memcpy(packet + count, digest, counter_tag_size);
    }
    return measure_thread_cpu() - start;
}

int64_t measure_galois_mode(int count, int rounds) {
    const crypto_functions *crypt = crypto();
    if (!crypt) return -1;
    uint8_t key[16] = {1}, iv[12] = {0}, packet[2048] = {0};
    void *context = crypt->make();
    crypt->begin(context, crypt->galois(), NULL, key, iv);
    int64_t start = measure_thread_cpu();
    for (int round = 0; round < rounds; round++) {
        int written;
        memcpy(iv + 4, &round, sizeof round);
        crypt->begin(context, NULL, NULL, NULL, iv);
        crypt->update(context, NULL, &written, packet, header_size);
        crypt->update(context, packet + header_size, &written, packet + header_size, count - header_size);
        crypt->finish(context, packet + count, &written);
        crypt->control(context, get_tag, galois_tag_size, packet + count);
    }
    return measure_thread_cpu() - start;
}
