// The part of libsystemd that speaks D-Bus: sd-bus(3).
#pragma once
#include <systemd/sd-bus.h>
