#define _GNU_SOURCE
#include "CAllocationCounter.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COUNTS_BY_HOOKS 1
#elif __has_feature(thread_sanitizer)
#define COUNTS_NOTHING 1
#endif
#endif

static __thread struct allocation_counts counts __attribute__((tls_model("initial-exec")));
static __thread int is_counting __attribute__((tls_model("initial-exec")));
static __thread int traced_count __attribute__((tls_model("initial-exec")));

void allocation_counter_begin(void) {
    const char *traced = getenv("ALLOCATION_COUNTER_TRACE");
    void *frames[1];
    // The first call loads a library, which allocates; later ones do not.
    if (traced) backtrace(frames, 1);
    traced_count = traced ? atoi(traced) : 0;
    counts = (struct allocation_counts){0};
    is_counting = 1;
}

struct allocation_counts allocation_counter_read(void) { return counts; }

struct allocation_counts allocation_counter_end(void) {
    is_counting = 0;
    return counts;
}

#ifdef COUNTS_NOTHING

int allocation_counter_is_active(void) { return 0; }

#else

int allocation_counter_is_active(void) { return 1; }

static void trace(void) {
    if (traced_count <= 0) return;
    traced_count--;
    int was_counting = is_counting;
    is_counting = 0;
    void *frames[40];
    backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
    if (write(STDERR_FILENO, "\n", 1) < 0) traced_count = 0;
    is_counting = was_counting;
}

static inline void note(int64_t *counter) {
    if (__builtin_expect(!is_counting, 1)) return;
    ++*counter;
    trace();
}

#ifdef COUNTS_BY_HOOKS

// The address sanitizer has an allocator of its own, which tells of what it does.
extern int __sanitizer_install_malloc_and_free_hooks(
    void (*on_malloc)(const volatile void *, size_t),
    void (*on_free)(const volatile void *)
);

static void on_malloc(const volatile void *pointer, size_t size) { note(&counts.allocations); }

static void on_free(const volatile void *pointer) {
    if (pointer) note(&counts.frees);
}

__attribute__((constructor)) static void install_hooks(void) {
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

#else

// glibc's own names for its allocator, so that no look-up is needed, which would itself allocate.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) {
    note(&counts.allocations);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(&counts.allocations);
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size) {
    note(&counts.allocations);
    return __libc_realloc(pointer, size);
}

void *memalign(size_t alignment, size_t size) {
    note(&counts.allocations);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note(&counts.allocations);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    note(&counts.allocations);
    void *pointer = __libc_memalign(alignment, size);
    if (!pointer) return ENOMEM;
    *result = pointer;
    return 0;
}

void free(void *pointer) {
    if (pointer) note(&counts.frees);
    __libc_free(pointer);
}

#endif

static int (*real_mutex_lock)(pthread_mutex_t *);
static int (*real_rwlock_rdlock)(pthread_rwlock_t *);
static int (*real_rwlock_wrlock)(pthread_rwlock_t *);

static void *next_symbol(void **cached, const char *name) {
    void *found = __atomic_load_n(cached, __ATOMIC_ACQUIRE);
    if (found) return found;
    found = dlsym(RTLD_NEXT, name);
    __atomic_store_n(cached, found, __ATOMIC_RELEASE);
    return found;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    note(&counts.locks);
    int (*next)(pthread_mutex_t *) = next_symbol((void **)&real_mutex_lock, "pthread_mutex_lock");
    return next(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    note(&counts.locks);
    int (*next)(pthread_rwlock_t *) = next_symbol((void **)&real_rwlock_rdlock, "pthread_rwlock_rdlock");
    return next(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    note(&counts.locks);
    int (*next)(pthread_rwlock_t *) = next_symbol((void **)&real_rwlock_wrlock, "pthread_rwlock_wrlock");
    return next(lock);
}

static long (*real_syscall)(long, ...);

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_gettid) note(&counts.thread_number_requests);
    if (number == SYS_futex) note(&counts.locks);
    long (*next)(long, ...) = next_symbol((void **)&real_syscall, "syscall");
    return next(number, a, b, c, d, e, f);
}

#endif
