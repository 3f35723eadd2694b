// Stands in front of libopus: the executable's own definitions win over the shared library's.
#define _GNU_SOURCE
#include "CMeasure.h"
#include <dlfcn.h>
#include <stddef.h>

static int is_on;
static int64_t nanoseconds, calls;

void measure_opus(int on) {
    __atomic_store_n(&nanoseconds, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&is_on, on, __ATOMIC_RELEASE);
}

int64_t measure_opus_nanoseconds(void) { return __atomic_load_n(&nanoseconds, __ATOMIC_RELAXED); }
int64_t measure_opus_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

static int64_t begin(void) { return __atomic_load_n(&is_on, __ATOMIC_RELAXED) ? measure_thread_cpu() : 0; }

static void end(int64_t start) {
    if (!start) return;
    __atomic_fetch_add(&nanoseconds, measure_thread_cpu() - start, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

int opus_encode(void *state, const int16_t *samples, int count, unsigned char *bytes, int32_t capacity) {
    static int (*next)(void *, const int16_t *, int, unsigned char *, int32_t);
    if (!next) next = dlsym(RTLD_NEXT, "opus_encode");
    int64_t start = begin();
    int result = next(state, samples, count, bytes, capacity);
    end(start);
    return result;
}

int opus_decode(void *state, const unsigned char *bytes, int32_t length, int16_t *samples, int count, int fec) {
    static int (*next)(void *, const unsigned char *, int32_t, int16_t *, int, int);
    if (!next) next = dlsym(RTLD_NEXT, "opus_decode");
    int64_t start = begin();
    int result = next(state, bytes, length, samples, count, fec);
    end(start);
    return result;
}

double measure_clock_cost(void) {
    int64_t start = measure_thread_cpu();
    for (int round = 0; round < 2000; round++) measure_thread_cpu();
    return (double)(measure_thread_cpu() - start) / 2000;
}
