// Which processors a thread runs on (sched_setaffinity(2)), which Swift's Glibc does not have.
#pragma once

// 1 when this process may run on the processor, 0 when not or when there is none of that number.
int processor_is_allowed(int processor);
// Keeps the calling thread on the processor. 0, or -errno.
int processor_stay(int processor);
