// Linux system calls that Swift cannot call as they are: variadic ones, macros, and control messages of sockets.
// Each returns what the call returns, or -errno.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

// Open-file-description locks (fcntl(2), "Open file description locks"): one byte at `offset`.

// Takes the byte, shared with nobody; waits for it when `waits`. 0, -EAGAIN when held elsewhere, -EINTR.
static inline int linux_lock_byte(int descriptor, off_t offset, int waits) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    if (fcntl(descriptor, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock) == 0) return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

static inline int linux_unlock_byte(int descriptor, off_t offset) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

// 1 when another open file holds the byte, 0 when none does.
static inline int linux_is_byte_locked(int descriptor, off_t offset) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -errno;
    return lock.l_type != F_UNLCK;
}

// Gives a file another name, and refuses when that is taken (renameat2(2), RENAME_NOREPLACE).
static inline int linux_rename_new(int directory, const char *name, int new_directory, const char *new_name) {
    return renameat2(directory, name, new_directory, new_name, RENAME_NOREPLACE) == 0 ? 0 : -errno;
}

// The number of the file system that holds the path (statfs(2)).
static inline long linux_file_system_type(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (long)(unsigned int)status.f_type : -errno;
}

// A descriptor for the process, readable once it has ended (pidfd_open(2)).
static inline int linux_pidfd_open(pid_t process) {
    long result = syscall(SYS_pidfd_open, process, 0);
    return result < 0 ? -errno : (int)result;
}

static inline int linux_pidfd_send_signal(int pidfd, int signal) {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0 ? 0 : -errno;
}

// Memory behind a descriptor (memfd_create(2)), and seals on it (fcntl(2), "File Sealing").
static inline int linux_memory_descriptor(const char *name) {
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor < 0 ? -errno : descriptor;
}

enum { linux_all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static inline int linux_seal(int descriptor) {
    return fcntl(descriptor, F_ADD_SEALS, linux_all_seals) == 0 ? 0 : -errno;
}

static inline int linux_seals(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals < 0 ? -errno : seals;
}

enum { linux_most_descriptors = 8 };

// Sends `bytes` with descriptors beside them (unix(7), SCM_RIGHTS), at once or not at all.
static inline ssize_t linux_send_descriptors(int socket, const void *bytes, size_t count, const int *descriptors,
                                             int descriptor_count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * linux_most_descriptors)];
    } control;
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

// Receives one message with the descriptors beside it, close-on-exec; those beyond linux_most_descriptors are closed.
// -EMSGSIZE when the message or its descriptors were cut.
static inline ssize_t linux_receive_descriptors(int socket, void *bytes, size_t count, int *descriptors,
                                                int *descriptor_count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * linux_most_descriptors)];
    } control;
    struct iovec vector = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    *descriptor_count = 0;
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) return -errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int found = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int index = 0; index < found; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof descriptor);
            if (*descriptor_count < linux_most_descriptors)
                descriptors[(*descriptor_count)++] = descriptor;
            else
                close(descriptor);
        }
    }
    if (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
        while (*descriptor_count > 0) close(descriptors[--*descriptor_count]);
        return -EMSGSIZE;
    }
    return received;
}

// The identity of a socket's peer at the time of its connect or listen (unix(7), SO_PEERCRED).
static inline int linux_peer_credentials(int socket, pid_t *process, uid_t *user, gid_t *group) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -errno;
    *process = credentials.pid;
    *user = credentials.uid;
    *group = credentials.gid;
    return 0;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
enum { linux_peer_credentials_option = SO_PEERCRED, linux_peer_pidfd_option = SO_PEERPIDFD };
