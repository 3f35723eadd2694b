#define _GNU_SOURCE
#include "processors.h"

#include <errno.h>
#include <sched.h>

int processor_is_allowed(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    return processor >= 0 && processor < CPU_SETSIZE && CPU_ISSET(processor, &set);
}

int processor_stay(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}
