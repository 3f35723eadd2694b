// Counts what one thread allocates and locks between two moments.
//
// The target defines malloc and its kin, the pthread locks and `syscall` in front of the C library's own, so every
// caller in the process passes here; under the address sanitizer allocations are counted by that one's hooks. Other threads, and everything outside `begin` and `end`, are not counted.
// A Swift `Mutex` takes its lock without a call, but asks the kernel for the thread's number before its first lock on
// a thread. So locks are counted reliably on a thread that has done nothing else before `begin`.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct allocation_counts {
    int64_t allocations;
    int64_t frees;
    int64_t locks;
    int64_t thread_number_requests;
};

// Whether the counters count; they do not under the thread sanitizer, which brings an allocator and locks of its own.
int allocation_counter_is_active(void);
// Sets the calling thread's counters to zero and starts them. With ALLOCATION_COUNTER_TRACE=N in the environment the
// first N events tell on standard error where they come from.
void allocation_counter_begin(void);
// The calling thread's counters so far.
struct allocation_counts allocation_counter_read(void);
// Stops the calling thread's counters and answers them.
struct allocation_counts allocation_counter_end(void);
