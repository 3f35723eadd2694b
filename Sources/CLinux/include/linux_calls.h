// Linux system calls that Swift cannot call as they are: variadic ones, macros, and control messages of sockets.
// Each returns what the call returns, or -errno. The types are plain ones, so that no system header comes in twice.
#pragma once

// Open-file-description locks on one byte at `offset` (fcntl(2), "Open file description locks"). They belong to the open
// file and not to the process, and the kernel releases them when its last descriptor is closed, as at death.

// Takes the byte, shared with nobody. -EAGAIN when it is held elsewhere.
int linux_lock_byte(int descriptor, long offset);
int linux_unlock_byte(int descriptor, long offset);
// 1 when another open file holds the byte, 0 when none does.
int linux_is_byte_locked(int descriptor, long offset);

// A wait for a byte on a thread of its own, which sleeps in the kernel until the byte is free.
struct linux_lock_wait {
    int descriptor;
    long offset;
    void *context;
    // Called once, from the thread of the wait and as the last thing in it: with 0 and the byte, with -ECANCELED and
    // without it, or with -errno. The wait may be gone when it returns.
    void (*ended)(void *context, int result);
    // The thread (pthread_t), once started.
    unsigned long thread;
};

// Starts the thread, which takes no signals of the program. The wait must stay where it is until it has ended.
int linux_start_lock_wait(struct linux_lock_wait *wait);
// Has a wait that has not ended yet end without the byte, as soon as its thread runs (pthread_cancel(3)). The C library
// wakes the thread by a signal that it keeps for itself: no number and no handler of the program is used.
void linux_cancel_lock_wait(struct linux_lock_wait *wait);

// Runs `body` on a thread of its own, detached, which takes no signals of the program.
int linux_start_thread(void (*body)(void *context), void *context);

// A descriptor that is readable once it was written to (eventfd(2)), close-on-exec and non-blocking.
int linux_event_descriptor(void);

// Nanoseconds of the clock of timers, and of the one that counts the machine's sleep, too (clock_gettime(2)).
long linux_monotonic_nanoseconds(void);
long linux_boot_nanoseconds(void);

// A descriptor for the process, readable once it has ended (pidfd_open(2)).
int linux_pidfd_open(int process);
int linux_pidfd_send_signal(int pidfd, int signal);

// Starts a program in a session of its own, with /dev/null in place of the standard streams and no other descriptor
// (posix_spawn(3)). Nobody waits for its end.
int linux_start_detached(const char *program, char *const arguments[]);

// The number of the file system that holds the path (statfs(2)).
long linux_file_system_type(const char *path);
// Gives a file another name, and refuses when that is taken (renameat2(2), RENAME_NOREPLACE).
int linux_rename_new(int directory, const char *name, int new_directory, const char *new_name);

// Memory behind a descriptor (memfd_create(2)); seals against any change of it (fcntl(2), "File Sealing").
int linux_memory_descriptor(const char *name);
int linux_seal(int descriptor);
// 1 when nobody can change or cut the memory any more.
int linux_is_sealed(int descriptor);

enum { linux_most_descriptors = 8 };

// A waiting connection, close-on-exec and non-blocking.
int linux_accept(int socket);
// Bytes of memory that what was sent through a Unix socket takes until the peer has read it (SIOCOUTQ).
int linux_unread_byte_count(int socket);
// Sends `bytes` with descriptors beside them (unix(7), SCM_RIGHTS), at once or not at all.
long linux_send_descriptors(int socket, const void *bytes, long count, const int *descriptors,
                            int descriptor_count);
// Receives one message with at most linux_most_descriptors beside it, close-on-exec, into room for as many.
// -EMSGSIZE when the message or its descriptors were more than that, -EMFILE when this process may have no more of
// them; then none is left open.
long linux_receive_descriptors(int socket, void *bytes, long count, int *descriptors, int *descriptor_count);

// Takes up to `count` datagrams that wait, and says how many (recvmmsg(2), MSG_TRUNC). `messages` are struct mmsghdr, each a
// struct msghdr and, of type unsigned, the datagram's byte count.
int linux_receive_datagrams(int socket, void *messages, unsigned count);

// Who a socket's peer was at the time of its connect or listen (unix(7), SO_PEERCRED).
struct linux_credentials {
    int process;
    unsigned int user;
    unsigned int group;
};
int linux_peer_credentials(int socket, struct linux_credentials *credentials);

// Names of socket options: SO_PEERCRED gives linux_credentials, SO_PEERPIDFD (since Linux 6.5) a descriptor.
int linux_peer_credentials_option(void);
int linux_peer_pidfd_option(void);
