#define _GNU_SOURCE
#include "CMeasure.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void replace(const char *path, char *const arguments[], int is_traced) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    if (is_traced && ptrace(PTRACE_TRACEME, 0, 0, 0) < 0) _exit(126);
    execv(path, arguments);
    _exit(127);
}

int measure_run(const char *path, char *const arguments[], int64_t *wall_nanoseconds, int64_t *cpu_nanoseconds) {
    int64_t start = measure_now();
    pid_t child = vfork();
    if (child < 0) return -errno;
    if (child == 0) replace(path, arguments, 0);
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) < 0) return -errno;
    *wall_nanoseconds = measure_now() - start;
    *cpu_nanoseconds = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000L
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000L;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int64_t measure_memory(int process, const char *name) {
    char path[64], line[256];
    size_t length = strlen(name);
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "r");
    if (!file) return -errno;
    long kilobytes = -ENOENT;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && sscanf(line + length, ": %ld", &kilobytes) == 1) break;
    fclose(file);
    return kilobytes;
}

int measure_start(const char *path, char *const arguments[]) {
    pid_t child = fork();
    if (child < 0) return -errno;
    if (child > 0) return child;
    execv(path, arguments);
    _exit(127);
}

static void *watch_parent(void *parent) {
    while (getppid() == (pid_t)(intptr_t)parent) usleep(100000);
    _exit(0);
}

// PR_SET_PDEATHSIG follows the thread that forked, and those of a pool come and go.
void measure_end_with_parent(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, watch_parent, (void *)(intptr_t)getppid());
    pthread_detach(thread);
}

void measure_stop(int process) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

// rusage tells a child's peak as at least its parent's, which the child was until exec; so the child is stopped at its
// exit, and the kernel asked for the peak of the memory that it has then.
int64_t measure_peak_memory(const char *path, char *const arguments[]) {
    pid_t child = fork();
    if (child < 0) return -errno;
    if (child == 0) replace(path, arguments, 1);
    int status, is_first = 1;
    int64_t peak = -ENOENT;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int is_exit = status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8));
        if (is_first) ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
        if (is_exit) peak = measure_memory(child, "VmHWM");
        int signal = is_first || is_exit ? 0 : WSTOPSIG(status);
        is_first = 0;
        ptrace(PTRACE_CONT, child, 0, signal);
    }
    return peak;
}
