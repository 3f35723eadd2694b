#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>

// A buffer of libre, as its re_mbuf.h has it.
struct buffer {
    uint8_t *bytes;
    size_t size, position, end;
};

typedef struct buffer *(*make_function)(size_t);
typedef int (*decode_function)(void **, struct buffer *);
typedef void *(*release_function)(void *);

int64_t measure_libre_messages(const uint8_t *bytes, const int32_t *counts, int count, int rounds) {
    static void *library;
    if (!library) library = dlopen("libre.so.0", RTLD_NOW);
    if (!library) return -1;
    make_function make = (make_function)dlsym(library, "mbuf_alloc");
    decode_function decode = (decode_function)dlsym(library, "sip_msg_decode");
    release_function release = (release_function)dlsym(library, "mem_deref");
    if (!make || !decode || !release) return -1;
    int64_t start = measure_thread_cpu();
    for (int round = 0; round < rounds; round++) {
        const uint8_t *message = bytes;
        for (int index = 0; index < count; index++) {
            struct buffer *buffer = make((size_t)counts[index]);
            if (!buffer) return -1;
            for (int32_t place = 0; place < counts[index]; place++) buffer->bytes[place] = message[place];
            buffer->position = 0;
            buffer->end = (size_t)counts[index];
            void *decoded = NULL;
            if (decode(&decoded, buffer) != 0) return -1;
            release(decoded);
            release(buffer);
            message += counts[index];
        }
    }
    return measure_thread_cpu() - start;
}
