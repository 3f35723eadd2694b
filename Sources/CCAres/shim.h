#pragma once
#include <ares.h>
// What wakes the thread that waits for the sockets of c-ares.
#include <sys/eventfd.h>
