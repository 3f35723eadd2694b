#pragma once

#include <semaphore.h>
#include <time.h>

// Since glibc 2.30; its declaration is hidden from Swift.
extern int sem_clockwait(sem_t *, clockid_t, const struct timespec *);

// Waits until the semaphore is posted or CLOCK_MONOTONIC has passed `seconds` and `nanoseconds`: 0, or -1 with errno.
static inline int semaphore_wait_until(sem_t *semaphore, long seconds, long nanoseconds) {
    const struct timespec time = {seconds, nanoseconds};
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, &time);
}
