// Swift cannot write the variadic function that libasound's error handler must be.
#pragma once
#include <alsa/asoundlib.h>

static inline void calsa_ignore_error(const char *file, int line, const char *function, int code, const char *format, ...) {
    (void)file, (void)line, (void)function, (void)code, (void)format;
}

// Keeps libasound from printing to standard error; what fails is in the return codes.
static inline void calsa_silence(void) { snd_lib_error_set_handler(calsa_ignore_error); }
