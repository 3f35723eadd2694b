#pragma once
#include <bcg729/decoder.h>
#include <bcg729/encoder.h>
