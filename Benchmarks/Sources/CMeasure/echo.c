#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>

// SPEEX_ECHO_SET_SAMPLING_RATE
enum { set_sampling_rate = 24, frame_size = 160 };

typedef void *(*make_function)(int, int);
typedef int (*set_function)(void *, int, void *);
typedef void (*process_function)(void *, const int16_t *, const int16_t *, int16_t *);
typedef void (*free_function)(void *);

int64_t measure_speex_echo(const int16_t *captured, const int16_t *played, int count, int tail) {
    static void *library;
    if (!library) library = dlopen("libspeexdsp.so.1", RTLD_NOW);
    if (!library) return -1;
    make_function make = (make_function)dlsym(library, "speex_echo_state_init");
    set_function set = (set_function)dlsym(library, "speex_echo_ctl");
    process_function process = (process_function)dlsym(library, "speex_echo_cancellation");
    free_function release = (free_function)dlsym(library, "speex_echo_state_destroy");
    if (!make || !set || !process || !release) return -1;
    void *state = make(frame_size, tail);
    if (!state) return -1;
    int rate = 16000;
    set(state, set_sampling_rate, &rate);
    int16_t output[frame_size];
    int64_t start = measure_thread_cpu();
    for (int index = 0; index + frame_size <= count; index += frame_size)
        process(state, captured + index, played + index, output);
    int64_t end = measure_thread_cpu();
    release(state);
    return end - start;
}
