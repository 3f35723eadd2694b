#pragma once

// Sums of products in vector registers, by the vector types of clang and gcc. In C, because debug builds do not optimise
// Swift's SIMD types: there they take sixty times as long.
//
// `count` is a multiple of 16, coefficients lie at multiples of 32 bytes, samples anywhere.

typedef float vector_of_floats __attribute__((vector_size(32), may_alias));
typedef float vector_of_floats_anywhere __attribute__((vector_size(32), aligned(4), may_alias));

// The sum of coefficients[n] * samples[n].
static inline float sum_of_products(const float *coefficients, const float *samples, long count) {
    vector_of_floats first = {0}, second = {0};
    for (long n = 0; n < count; n += 16) {
        const vector_of_floats *row = (const vector_of_floats *)(coefficients + n);
        const vector_of_floats_anywhere *sound = (const vector_of_floats_anywhere *)(samples + n);
        first += row[0] * sound[0];
        second += row[1] * sound[1];
    }
    first += second;
    return ((first[0] + first[4]) + (first[2] + first[6])) + ((first[1] + first[5]) + (first[3] + first[7]));
}

// The same with coefficients that lie between those of `low` (0) and of `high` (1).
static inline float sum_of_products_between(const float *low, const float *high, float between, const float *samples,
                                            long count) {
    vector_of_floats first = {0}, second = {0};
    for (long n = 0; n < count; n += 16) {
        const vector_of_floats *from = (const vector_of_floats *)(low + n);
        const vector_of_floats *to = (const vector_of_floats *)(high + n);
        const vector_of_floats_anywhere *sound = (const vector_of_floats_anywhere *)(samples + n);
        first += (from[0] + (to[0] - from[0]) * between) * sound[0];
        second += (from[1] + (to[1] - from[1]) * between) * sound[1];
    }
    first += second;
    return ((first[0] + first[4]) + (first[2] + first[6])) + ((first[1] + first[5]) + (first[3] + first[7]));
}
