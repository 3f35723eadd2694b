#define _GNU_SOURCE
#include "CMeasure.h"
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { frame = 160, header = 12 };

struct floor_run {
    int legs, seconds, sample_count;
    const int16_t *samples;
    int64_t cpu, received;
};

static inline uint8_t encode(int16_t sample) {
    int magnitude = sample, sign = 0;
    if (magnitude < 0) {
        magnitude = -magnitude;
        sign = 0x80;
    }
    if (magnitude > 32635) magnitude = 32635;
    magnitude += 132;
    int exponent = 24 - __builtin_clz((unsigned)magnitude);
    return (uint8_t)~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15));
}

static inline int16_t decode(uint8_t code) {
    code = (uint8_t)~code;
    int exponent = (code >> 4) & 7;
    int magnitude = ((((code & 15) << 3) + 132) << exponent) - 132;
    return (int16_t)(code & 0x80 ? -magnitude : magnitude);
}

static void *run(void *argument) {
    struct floor_run *work = argument;
    int legs = work->legs;
    int *sockets = calloc((size_t)legs, sizeof *sockets), *positions = calloc((size_t)legs, sizeof *positions);
    struct sockaddr_in *addresses = calloc((size_t)legs, sizeof *addresses);
    uint8_t(*sent)[400] = calloc((size_t)legs, 400), (*taken)[400] = calloc((size_t)legs, 400);
    int opened = 0;
    for (; opened < legs; opened++) {
        struct sockaddr_in *address = &addresses[opened];
        address->sin_family = AF_INET;
        address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        sockets[opened] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        socklen_t length = sizeof *address;
        if (sockets[opened] < 0 || bind(sockets[opened], (void *)address, length) < 0
            || getsockname(sockets[opened], (void *)address, &length) < 0) {
            work->cpu = -errno;
            break;
        }
        positions[opened] = opened * 7919 * 16 % (work->sample_count / 2);
    }
    struct sched_param priority = {.sched_priority = 10};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
    int16_t heard[400];
    volatile long sum = 0;
    int64_t start = 0;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    for (int tick = 0; opened == legs && tick < (work->seconds + 1) * 50; tick++) {
        if (tick == 50) {
            start = measure_thread_cpu();
            work->received = 0;
        }
        for (int leg = 0; leg < legs; leg++) {
            if (positions[leg] + frame > work->sample_count) positions[leg] = 0;
            for (int index = 0; index < frame; index++)
                sent[leg][header + index] = encode(work->samples[positions[leg] + index]);
            positions[leg] += frame;
            sendto(sockets[leg], sent[leg], header + frame, 0, (void *)&addresses[leg], sizeof *addresses);
            ssize_t length;
            while ((length = recv(sockets[leg], taken[leg], 400, 0)) > 0) {
                work->received++;
                for (int index = 0; index < length - header; index++) heard[index] = decode(taken[leg][header + index]);
                sum += heard[9];
            }
        }
        time.tv_nsec += 20000000;
        if (time.tv_nsec >= 1000000000) {
            time.tv_nsec -= 1000000000;
            time.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
    }
    if (opened == legs) work->cpu = measure_thread_cpu() - start;
    for (int leg = 0; leg < opened; leg++) close(sockets[leg]);
    free(sockets);
    free(positions);
    free(addresses);
    free(sent);
    free(taken);
    return NULL;
}

int64_t measure_floor(int legs, int seconds, const int16_t *samples, int sample_count, int64_t *received) {
    struct floor_run work = {.legs = legs, .seconds = seconds, .samples = samples, .sample_count = sample_count};
    pthread_t thread;
    int code = pthread_create(&thread, NULL, run, &work);
    if (code) return -code;
    pthread_join(thread, NULL);
    *received = work.received;
    return work.cpu;
}
