// Linux system calls that Swift cannot call as they are: variadic ones, macros, and control messages of sockets.
// Each returns what the call returns, or -errno. The types are plain ones, so that no system header comes in twice.
#pragma once

// Open-file-description locks on one byte at `offset` (fcntl(2), "Open file description locks"). They belong to the open
// file and not to the process, and the kernel releases them when its last descriptor is closed, as at death.

// Takes the byte, shared with nobody; waits for it when `waits`. -EAGAIN when it is held elsewhere, -EINTR after a signal.
int linux_lock_byte(int descriptor, long offset, int waits);
int linux_unlock_byte(int descriptor, long offset);
// 1 when another open file holds the byte, 0 when none does.
int linux_is_byte_locked(int descriptor, long offset);

// A descriptor for the process, readable once it has ended (pidfd_open(2)).
int linux_pidfd_open(int process);
int linux_pidfd_send_signal(int pidfd, int signal);

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
