/* stage: a scenario file in a temporary folder and a clock that only tests move, around the simulated library. */
#ifndef TEST_STAGE_H
#define TEST_STAGE_H

#include "support.h"

#include "nvmlsim/sim.h"

/* A freshly loaded library with this scenario, initialised, at time 0. */
void stage_play(const char *text);
/* The same, but not initialised. */
void stage_set(const char *text);
/* Replace the file in one step (rename), and let the next call look at it. */
void stage_rewrite(const char *text);
void stage_remove_file(void);
void stage_advance(double seconds);
/* How long the calls have slept in all. */
double stage_slept_s(void);
/* What stands on stderr since stage_catch_stderr; valid until the next call. */
void stage_catch_stderr(void);
const char *stage_stderr(void);

struct nvml_device *stage_gpu(uint32_t index);
/* MIG device by index of its slice. */
struct nvml_device *stage_mig(uint32_t gpu, uint32_t index);

/* cmocka group hooks. */
int stage_setup(void **state);
int stage_teardown(void **state);

#define assert_rc(call, want) assert_int_equal(call, NVML_RC_##want)

#endif
