#define _GNU_SOURCE
#include "CMeasure.h"
#include <time.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t measure_thread_cpu(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
int64_t measure_process_cpu(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
int64_t measure_now(void) { return read_clock(CLOCK_MONOTONIC); }
