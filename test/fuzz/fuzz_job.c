/* Variables of schedulers, any bytes: one a line, in the order of `names`; plans of them find devices or not. */
#include "cli/job.h"

#include <string.h>

static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL",
                                    "CUDA_DEVICE_ORDER",    "SLURM_PROCID",    "SLURM_JOB_ID"};

struct variables {
    char *values[ARRAY_LEN(names)];
};

static const char *look_up(void *context, const char *name)
{
    struct variables *v = context;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return v->values[i];
    return NULL;
}

static void try_plan(struct variables *v, enum job_environment environment)
{
    static const struct job_seen seen[] = {{"GPU-a1", "", "00000000:3B:00.0", "H100", 0, -1, -1},
                                           {"GPU-b1", "", "00000000:1B:00.0", "T4", 1, -1, -1},
                                           {"MIG-c1", "GPU-b1", "", "T4", 1, 1, 0}};
    struct job_plan plan;
    bool is_chosen[ARRAY_LEN(seen)];
    struct buf text BUF_AUTO;
    buf_init(&text, 1 << 20);
    job_plan_init(&plan, environment, -1, "host", look_up, v);
    size_t n_missing = job_match(&plan, seen, ARRAY_LEN(seen), is_chosen, &text);
    if (plan.devices.len > JOB_DEVICES_MAX || n_missing > plan.devices.len + 1)
        abort();
    job_plan_describe(&plan, &text);
    if (text.is_overflowed)
        abort();
    job_plan_fini(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct variables v = {0};
    for (size_t i = 0; i < ARRAY_LEN(names) && rest.ptr; i++) {
        struct str line = str_cut(&rest, '\n');
        v.values[i] = mem_strndup(line.ptr ? line.ptr : "", line.len);
    }
    try_plan(&v, JOB_SLURM);
    try_plan(&v, JOB_FLUX);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        free(v.values[i]);
    return 0;
}
