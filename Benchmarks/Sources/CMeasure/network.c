#define _GNU_SOURCE
#include "CMeasure.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// What is opened in a network by a thread that is in it and ends: sockets stay where they began.
struct opening {
    int network;
    int (*open)(void);
    int result;
};

static void *open_there(void *argument) {
    struct opening *opening = argument;
    int status = opening->network < 0 ? unshare(CLONE_NEWNET) : setns(opening->network, CLONE_NEWNET);
    opening->result = status < 0 ? -errno : opening->open();
    if (opening->result < 0 && status == 0) opening->result = -errno;
    return NULL;
}

static int open_in(int network, int (*open)(void)) {
    struct opening opening = {network, open, 0};
    pthread_t thread;
    int status = pthread_create(&thread, NULL, open_there, &opening);
    if (status != 0) return -status;
    pthread_join(thread, NULL);
    return opening.result;
}

static int open_network(void) { return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }

static int open_capture(void) {
    // Headers of the link are left out, so that every interface looks the same.
    int descriptor = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    int on = 1;
    if (descriptor >= 0) setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    return descriptor;
}

static int open_addresses(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR};
    if (descriptor >= 0 && bind(descriptor, (struct sockaddr *)&own, sizeof own) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

int measure_make_network(void) { return open_in(-1, open_network); }
int measure_open_capture(int network) { return open_in(network, open_capture); }
int measure_open_addresses(int network) { return open_in(network, open_addresses); }

static int take_address(int descriptor, struct measure_event *event) {
    union {
        struct nlmsghdr header;
        uint8_t bytes[8192];
    } message;
    ssize_t count = recv(descriptor, &message, sizeof message, 0);
    event->time = measure_now();
    if (count < 0 || !NLMSG_OK(&message.header, count)) return 0;
    int type = message.header.nlmsg_type;
    if (type != RTM_NEWADDR && type != RTM_DELADDR) return 0;
    struct ifaddrmsg *body = NLMSG_DATA(&message.header);
    int length = IFA_PAYLOAD(&message.header);
    for (struct rtattr *item = IFA_RTA(body); RTA_OK(item, length); item = RTA_NEXT(item, length)) {
        if (item->rta_type != IFA_LOCAL) continue;
        event->kind = type == RTM_NEWADDR ? MEASURE_ADDED : MEASURE_REMOVED;
        memcpy(&event->source, RTA_DATA(item), 4);
        event->source = ntohl(event->source);
        return 1;
    }
    return 0;
}

static int take_packet(int descriptor, struct measure_event *event) {
    uint8_t bytes[128], control[128];
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(descriptor, &message, 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    event->time = measure_now();
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SO_TIMESTAMPNS) continue;
        // It was there before it was taken.
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(item), sizeof stamp);
        event->time -= (now.tv_sec - stamp.tv_sec) * 1000000000L + (now.tv_nsec - stamp.tv_nsec);
    }
    int head = (bytes[0] & 15) * 4;
    if (count < head + 10 || bytes[0] >> 4 != 4 || bytes[9] != IPPROTO_UDP) return 0;
    memcpy(&event->source, bytes + 12, 4);
    memcpy(&event->target, bytes + 16, 4);
    event->source = ntohl(event->source);
    event->target = ntohl(event->target);
    event->kind = MEASURE_DATAGRAM;
    memcpy(event->payload, bytes + head + 8, 2);
    return 1;
}

int measure_next_event(int addresses, int capture, int milliseconds, struct measure_event *event) {
    struct pollfd waiting[] = {{.fd = addresses, .events = POLLIN}, {.fd = capture, .events = POLLIN}};
    int count = poll(waiting, 2, milliseconds);
    if (count < 0) return errno == EINTR ? 0 : -errno;
    event->kind = MEASURE_NOTHING;
    if (waiting[0].revents) return take_address(addresses, event), 1;
    if (waiting[1].revents) return take_packet(capture, event), 1;
    return 0;
}
