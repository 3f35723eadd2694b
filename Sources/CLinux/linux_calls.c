#define _GNU_SOURCE
#include "linux_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct flock byte_lock(short type, long offset) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    return lock;
}

int linux_lock_byte(int descriptor, long offset) {
    struct flock lock = byte_lock(F_WRLCK, offset);
    if (fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

int linux_unlock_byte(int descriptor, long offset) {
    struct flock lock = byte_lock(F_UNLCK, offset);
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

int linux_is_byte_locked(int descriptor, long offset) {
    struct flock lock = byte_lock(F_WRLCK, offset);
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -errno;
    return lock.l_type != F_UNLCK;
}

// A detached thread that has every signal blocked from its first instruction on: those of the program go to its others.
static int start_thread(pthread_t *thread, void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    int error = pthread_attr_init(&attributes);
    if (error != 0) return -error;
    error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (error == 0) error = pthread_attr_setsigmask_np(&attributes, &all);
    if (error == 0) error = pthread_create(thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    return -error;
}

// The byte may have come in the moment of the cancellation.
static void lock_wait_cancelled(void *argument) {
    struct linux_lock_wait *wait = argument;
    linux_unlock_byte(wait->descriptor, wait->offset);
    wait->ended(wait->context, -ECANCELED);
}

static void *lock_wait_body(void *argument) {
    struct linux_lock_wait *wait = argument;
    struct flock lock = byte_lock(F_WRLCK, wait->offset);
    int result, state;
    pthread_cleanup_push(lock_wait_cancelled, wait);
    do {
        // The only cancellation point: a cancellation that came before it ends the thread here.
        result = fcntl(wait->descriptor, F_OFD_SETLKW, &lock) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    // From here on the wait has its result, and a late cancellation ends nothing.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cleanup_pop(0);
    wait->ended(wait->context, result);
    return NULL;
}

int linux_start_lock_wait(struct linux_lock_wait *wait) {
    pthread_t thread;
    int result = start_thread(&thread, lock_wait_body, wait);
    if (result == 0) wait->thread = thread;
    return result;
}

void linux_cancel_lock_wait(struct linux_lock_wait *wait) { pthread_cancel(wait->thread); }

struct thread_start {
    void (*body)(void *);
    void *context;
};

static void *thread_body(void *argument) {
    struct thread_start start = *(struct thread_start *)argument;
    free(argument);
    start.body(start.context);
    return NULL;
}

int linux_start_thread(void (*body)(void *), void *context) {
    struct thread_start *start = malloc(sizeof *start);
    if (start == NULL) return -ENOMEM;
    *start = (struct thread_start){.body = body, .context = context};
    pthread_t thread;
    int result = start_thread(&thread, thread_body, start);
    if (result != 0) free(start);
    return result;
}

int linux_event_descriptor(void) {
    int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int linux_pidfd_open(int process) {
    long result = syscall(SYS_pidfd_open, process, 0);
    return result < 0 ? -errno : (int)result;
}

int linux_pidfd_send_signal(int pidfd, int signal) {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0 ? 0 : -errno;
}

int linux_start_detached(const char *program, char *const arguments[]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return -error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        for (int number = 0; number < 3 && error == 0; number++) {
            const int mode = number == 0 ? O_RDONLY : O_WRONLY;
            error = posix_spawn_file_actions_addopen(&actions, number, "/dev/null", mode, 0);
        }
        if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        if (error == 0) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        pid_t process;
        if (error == 0) error = posix_spawn(&process, program, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

long linux_file_system_type(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (long)status.f_type : -errno;
}

int linux_rename_new(int directory, const char *name, int new_directory, const char *new_name) {
    return renameat2(directory, name, new_directory, new_name, RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

int linux_memory_descriptor(const char *name) {
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor < 0 ? -errno : descriptor;
}

enum { all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int linux_seal(int descriptor) {
    return fcntl(descriptor, F_ADD_SEALS, all_seals) == 0 ? 0 : -errno;
}

int linux_is_sealed(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & all_seals) == all_seals;
}

int linux_accept(int socket) {
    int descriptor = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

int linux_unread_byte_count(int socket) {
    int count;
    return ioctl(socket, SIOCOUTQ, &count) == 0 ? count : -errno;
}

// Room for a control message with descriptors, aligned for its header.
union descriptor_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int) * linux_most_descriptors)];
};

long linux_send_descriptors(int socket, const void *bytes, long count, const int *descriptors,
                            int descriptor_count) {
    union descriptor_control control;
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptor_count < 0 || descriptor_count > linux_most_descriptors) return -EINVAL;
    if (descriptor_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptor_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * descriptor_count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * descriptor_count);
    }
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
}

long linux_receive_descriptors(int socket, void *bytes, long count, int *descriptors, int *descriptor_count) {
    union descriptor_control control;
    struct iovec vector = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    *descriptor_count = 0;
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) return -errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int found = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors, CMSG_DATA(header), sizeof(int) * found);
        *descriptor_count = found;
    }
    if (!(message.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) return received;
    // With room for more, the kernel cuts only because this process may have no more descriptors.
    int is_full = *descriptor_count == linux_most_descriptors;
    while (*descriptor_count > 0) close(descriptors[--*descriptor_count]);
    return message.msg_flags & MSG_TRUNC || is_full ? -EMSGSIZE : -EMFILE;
}

int linux_receive_datagrams(int socket, void *messages, unsigned count) {
    _Static_assert(sizeof(struct mmsghdr) == sizeof(struct msghdr) + 8, "a count, and room behind it");
    int received = recvmmsg(socket, messages, count, MSG_DONTWAIT | MSG_TRUNC, NULL);
    return received < 0 ? -errno : received;
}

int linux_peer_credentials(int socket, struct linux_credentials *credentials) {
    struct ucred found;
    socklen_t length = sizeof found;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return -errno;
    *credentials = (struct linux_credentials){.process = found.pid, .user = found.uid, .group = found.gid};
    return 0;
}

int linux_peer_credentials_option(void) { return SO_PEERCRED; }

int linux_peer_pidfd_option(void) { return SO_PEERPIDFD; }

static long nanoseconds(clockid_t clock) {
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

long linux_monotonic_nanoseconds(void) { return nanoseconds(CLOCK_MONOTONIC); }

long linux_boot_nanoseconds(void) { return nanoseconds(CLOCK_BOOTTIME); }
