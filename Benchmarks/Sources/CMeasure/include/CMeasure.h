// What the benchmarks need of C: clocks, a floor to compare with, a loop by the C compiler, processes, busy threads.
#pragma once
#include <stdint.h>

// CPU time of the calling thread and of the process, and the monotonic clock, in nanoseconds.
int64_t measure_thread_cpu(void);
int64_t measure_process_cpu(void);
int64_t measure_now(void);

// Starts or stops counting the CPU time inside libopus, of all threads; the counters begin at zero.
void measure_opus(int on);
int64_t measure_opus_nanoseconds(void);
int64_t measure_opus_calls(void);

// A G.711 leg without an engine: per 20 ms and leg u-law both ways, one sendto, recv until nothing is left, paced in
// real time under SCHED_FIFO when permitted. Answers CPU nanoseconds of `seconds`, after one second to warm up, or a
// negative errno. `received` gets the packets that came in that time.
int64_t measure_floor(int legs, int seconds, const int16_t *samples, int sample_count, int64_t *received);

// What GainFilter does, in C: 16-bit samples times a fixed-point factor, rounded and clipped.
void measure_gain(const int16_t *source, int16_t *target, int count, int32_t factor, int32_t shift);
// The same function compiled by gcc with -O3, when the file given exists; NULL otherwise.
typedef void (*measure_gain_function)(const int16_t *, int16_t *, int, int32_t, int32_t);
measure_gain_function measure_gain_of(const char *library);

// Threads that do nothing but use the processor, under the normal scheduler.
void measure_start_busy(int count);
void measure_stop_busy(void);

// Runs a program to its end with its output thrown away; answers its exit code or a negative errno.
int measure_run(const char *path, char *const arguments[], int64_t *wall_nanoseconds, int64_t *cpu_nanoseconds);
// The same, traced, for its peak resident memory in KiB, or a negative errno.
int64_t measure_peak_memory(const char *path, char *const arguments[]);

// CPU nanoseconds of spandsp's DTMF receiver for samples at 8 kHz in blocks of 10 ms, or -1 where libspandsp.so.2 is not
// to be had; `digits` gets how many it heard.
int64_t measure_spandsp_dtmf(const int16_t *samples, int count, int64_t *digits);

// CPU nanoseconds of SpeexDSP's resampler for samples in blocks, or -1 where libspeexdsp.so.1 is not to be had.
int64_t measure_speex_resampler(const int16_t *samples, int count, int from, int to, int quality, int block);

// CPU nanoseconds of SpeexDSP's echo canceller for samples at 16 kHz in blocks of 10 ms, with a tail of so many samples, or -1 where
// libspeexdsp.so.1 is not to be had.
int64_t measure_speex_echo(const int16_t *captured, const int16_t *played, int count, int tail);

// CPU nanoseconds in which libre reads each of some SIP messages, which follow each other in `bytes`, so many times, or -1
// where libre.so.0 is not to be had. It is given each in a buffer of its own, as it asks for.
int64_t measure_libre_messages(const uint8_t *bytes, const int32_t *counts, int count, int rounds);

// CPU nanoseconds in which libcrypto alone encrypts and signs so many packets of `count` bytes, 12 of them a header: by AES-128
// in counter mode with HMAC-SHA1 from kept states, and by AES-128 in Galois/counter mode; -1 where libcrypto.so.3 is not to be had.
int64_t measure_counter_mode(int count, int rounds);
int64_t measure_galois_mode(int count, int rounds);

// Bytes of the heap that are in use.
int64_t measure_heap(void);

// A process that answers each 64 bytes with 64 bytes, both by blocking calls on a socket pair; answers this end of it, or
// a negative errno. The process ends when the socket is closed.
int measure_start_pong(void);
// So many round trips through it, one after the other, each in nanoseconds.
int measure_ping(int socket, int count, int64_t *nanoseconds);

// Starts a program; answers its process or a negative errno.
int measure_start(const char *path, char *const arguments[]);
// Ends this process soon after the one that started it.
void measure_end_with_parent(void);
// Kills a process that was started here.
void measure_stop(int process);
// A line of /proc/PROCESS/status in KiB, such as "VmRSS", or a negative errno.
int64_t measure_memory(int process, const char *line);

// A network without interfaces of others, for as long as its descriptor and processes in it; or a negative errno.
int measure_make_network(void);
// A socket that tells of the addresses of a network, and one that sees what all its interfaces carry, or a negative errno.
int measure_open_addresses(int network);
int measure_open_capture(int network);

enum { MEASURE_NOTHING, MEASURE_ADDED, MEASURE_REMOVED, MEASURE_DATAGRAM };
struct measure_event {
    int64_t time;
    int kind;
    // IPv4; an address that comes or goes is the source.
    uint32_t source, target;
    // The first bytes of a datagram of UDP.
    uint8_t payload[2];
};
// What happens next at both; 1, 0 when nothing does in that time, or a negative errno. What is of no use is MEASURE_NOTHING.
int measure_next_event(int addresses, int capture, int milliseconds, struct measure_event *event);
