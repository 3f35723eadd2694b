#pragma once
#include <ms_plugin.h>

/* Registers X-INVERT: L16 with all bits inverted, 16000 Hz mono, without concealment of its own. */
void libmstest_init(ms_registry *registry);

/* Registers PCMU in place of the built-in one; every payload is 0x55, concealment writes 77. */
void libmspcmu_init(ms_registry *registry);

/* Hands in one unsound description after another. */
void libmsbad_init(ms_registry *registry);
/* How many of them the registry took. */
int libmsbad_accepted_count(void);
/* How many there are. */
int libmsbad_count(void);

/* Registers X-LIAR, whose callbacks answer counts far out of range, and X-NULL, whose encoders and decoders are NULL. */
void libmsliar_init(ms_registry *registry);

/* Keeps the registry and uses it after its call has ended. */
void libmslate_init(ms_registry *registry);
int libmslate_use_now(void);

/* Encoders and decoders alive. */
int libmstest_alive_count(void);
