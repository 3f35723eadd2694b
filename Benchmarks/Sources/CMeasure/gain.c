#define _GNU_SOURCE
#include "CMeasure.h"
#include <dlfcn.h>

void measure_gain(const int16_t *source, int16_t *target, int count, int32_t factor, int32_t shift) {
    int32_t half = 1 << (shift - 1);
    for (int index = 0; index < count; index++) {
        int32_t scaled = (source[index] * factor + half) >> shift;
        target[index] = (int16_t)(scaled > 32767 ? 32767 : scaled < -32768 ? -32768 : scaled);
    }
}

measure_gain_function measure_gain_of(const char *library) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return opened ? (measure_gain_function)dlsym(opened, "measure_gain") : 0;
}
