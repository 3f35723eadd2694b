#pragma once
#include <ms_plugin.h>

/* Registers DVI4 at 16000 Hz: the IMA ADPCM of RFC 3551, section 4.5.1, four bits for each sample. */
void libmsexample_init(ms_registry *registry);
