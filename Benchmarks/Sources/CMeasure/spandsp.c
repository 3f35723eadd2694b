#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>

typedef void *(*make_function)(void *, void (*)(void *, const char *, int), void *);
typedef int (*receive_function)(void *, const int16_t *, int);
typedef int (*free_function)(void *);

static void count_digits(void *count, const char *digits, int length) {
    (void)digits;
    *(int64_t *)count += length;
}

int64_t measure_spandsp_dtmf(const int16_t *samples, int count, int64_t *digits) {
    static void *library;
    if (!library) library = dlopen("libspandsp.so.2", RTLD_NOW);
    if (!library) return -1;
    make_function make = (make_function)dlsym(library, "dtmf_rx_init");
    receive_function receive = (receive_function)dlsym(library, "dtmf_rx");
    free_function release = (free_function)dlsym(library, "dtmf_rx_free");
    if (!make || !receive || !release) return -1;
    *digits = 0;
    void *state = make(NULL, count_digits, digits);
    if (!state) return -1;
    int64_t start = measure_thread_cpu();
    for (int index = 0; index + 80 <= count; index += 80) receive(state, samples + index, 80);
    int64_t end = measure_thread_cpu();
    release(state);
    return end - start;
}
