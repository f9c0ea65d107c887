/* gpu: from the driver's samples of processes to one number a process. */
#include "gpu/bench.h"

enum { NONE = 0 };
#define X NVML_NONE_U32

struct sample {
    uint32_t pid, ms, percent;
};

static const struct row {
    const char *what;
    struct sample samples[8];
    struct {
        uint32_t pid;
        double percent; /* -1: not known */
    } want[4];
} rows[] = {
    {"one sample a process is the answer, whenever it was taken",
     {{7, 100, 40}, {8, 100, 25}, {3, 900, 5}},
     {{3, 5}, {7, 40}, {8, 25}}},
    {"over a hundred in all stays", {{1, 100, 80}, {2, 100, 90}}, {{1, 80}, {2, 90}}},
    {"samples of several moments are averaged", {{1, 100, 10}, {1, 300, 20}, {1, 500, 60}}, {{1, 30}}},
    {"processes that take turns add up to the GPU",
     {{1, 100, 100}, {2, 300, 100}, {1, 500, 100}, {2, 700, 100}},
     {{1, 50}, {2, 50}}},
    {"a process that was there for a part of the time",
     {{1, 100, 60}, {1, 300, 60}, {2, 300, 20}, {1, 500, 60}, {1, 700, 60}},
     {{1, 60}, {2, 5}}},
    {"stamps of one moment differ a little",
     {{1, 100, 30}, {2, 101, 50}, {1, 300, 50}, {2, 304, 50}},
     {{1, 40}, {2, 50}}},
    {"two samples of one moment add up", {{1, 100, 30}, {1, 100, 25}, {2, 800, 7}}, {{1, 55}, {2, 7}}},
    {"but not past a hundred", {{1, 100, 70}, {1, 100, 70}}, {{1, 100}}},
    {"what is impossible is not known", {{1, 100, X}, {2, 100, 5}}, {{1, -1}, {2, 5}}},
    {"unless there is a possible one", {{1, 100, X}, {1, 100, 5}}, {{1, 5}}},
    {"nothing", {{NONE, 0, 0}}, {{NONE, 0}}},
};

static void check(const struct row *row)
{
    struct nvml_process_utilization_list samples = {0};
    struct gpu_usage_list usages = {0};
    vec_push(&usages, ((struct gpu_usage){.pid = 999})); /* of before */
    for (size_t i = 0; i < ARRAY_LEN(row->samples) && row->samples[i].pid != NONE; i++)
        vec_push(&samples, ((struct nvml_process_utilization){.pid = row->samples[i].pid,
                                                              .time_us = 1000000 + row->samples[i].ms * UINT64_C(1000),
                                                              .sm = row->samples[i].percent}));
    gpu_usage_of(&samples, &usages);
    size_t n = 0;
    while (n < ARRAY_LEN(row->want) && row->want[n].pid != NONE)
        n++;
    if (usages.len != n)
        fail_msg("%s: %zu processes", row->what, usages.len);
    for (size_t i = 0; i < n; i++) {
        double percent = usages.items[i].is_known ? usages.items[i].percent : -1;
        if (usages.items[i].pid != row->want[i].pid || percent > row->want[i].percent + 1e-9 ||
            percent < row->want[i].percent - 1e-9)
            fail_msg("%s: %u has %g", row->what, usages.items[i].pid, percent);
    }
    vec_fini(&samples);
    vec_fini(&usages);
}

static void test_samples_become_the_mean_of_each_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&rows[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples_become_the_mean_of_each_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
