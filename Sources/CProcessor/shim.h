#pragma once

#include <stddef.h>
#include <stdint.h>

// Asks for the two cache lines at `address`; never faults.
static inline void prefetch(const void *address) {
    __builtin_prefetch(address);
    __builtin_prefetch((const char *)address + 64);
}

// Asks for all cache lines of the `byteCount` bytes at `address`; never faults.
static inline void prefetch_bytes(const void *address, size_t byteCount) {
    const char *end = (const char *)address + byteCount;
    const char *line = (const char *)((uintptr_t)address & ~(uintptr_t)63);
    for (; line < end; line += 64) __builtin_prefetch(line);
}

// Has the calling thread take numbers that are too small to be heard, and slow to reckon with, for zero.
static inline void flush_denormals(void) {
#if defined(__SSE2__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | (UINT64_C(1) << 24)));
#endif
}
