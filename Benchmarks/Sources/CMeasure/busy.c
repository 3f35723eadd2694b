#define _GNU_SOURCE
#include "CMeasure.h"
#include <pthread.h>

static pthread_t threads[64];
static int thread_count, is_stopping;

static void *work(void *argument) {
    (void)argument;
    while (!__atomic_load_n(&is_stopping, __ATOMIC_RELAXED)) {}
    return 0;
}

void measure_start_busy(int count) {
    is_stopping = 0;
    for (thread_count = 0; thread_count < count && thread_count < 64; thread_count++)
        if (pthread_create(&threads[thread_count], 0, work, 0)) break;
}

void measure_stop_busy(void) {
    __atomic_store_n(&is_stopping, 1, __ATOMIC_RELAXED);
    while (thread_count > 0) pthread_join(threads[--thread_count], 0);
}
