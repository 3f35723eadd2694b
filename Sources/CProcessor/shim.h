#pragma once

#include <stddef.h>

// Asks for the two cache lines at `address`; never faults.
static inline void prefetch(const void *address) {
    __builtin_prefetch(address);
    __builtin_prefetch((const char *)address + 64);
}

// Asks for all cache lines of the `byteCount` bytes at `address`; never faults.
static inline void prefetch_bytes(const void *address, size_t byteCount) {
    for (size_t offset = 0; offset < byteCount; offset += 64) __builtin_prefetch((const char *)address + offset);
}
