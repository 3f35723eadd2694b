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
