#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>

typedef void *(*make_function)(uint32_t, uint32_t, uint32_t, int, int *);
typedef int (*process_function)(void *, uint32_t, const int16_t *, uint32_t *, int16_t *, uint32_t *);
typedef void (*free_function)(void *);

int64_t measure_speex_resampler(const int16_t *samples, int count, int from, int to, int quality, int block) {
    static void *library;
    if (!library) library = dlopen("libspeexdsp.so.1", RTLD_NOW);
    if (!library) return -1;
    make_function make = (make_function)dlsym(library, "speex_resampler_init");
    process_function process = (process_function)dlsym(library, "speex_resampler_process_int");
    free_function release = (free_function)dlsym(library, "speex_resampler_destroy");
    if (!make || !process || !release) return -1;
    void *state = make(1, from, to, quality, NULL);
    if (!state) return -1;
    int16_t output[4096];
    int64_t start = measure_thread_cpu();
    for (int index = 0; index + block <= count; index += block) {
        uint32_t taken = block, given = 4096;
        process(state, 0, samples + index, &taken, output, &given);
    }
    int64_t end = measure_thread_cpu();
    release(state);
    return end - start;
}
