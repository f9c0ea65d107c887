/* Scenario files: whatever is accepted must play with finite values within their ranges and with counters that never
 * fall; whatever is refused must be refused in one line with its place. */
#include "nvmlsim/player.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

/* Every CSV file holds what stands behind the first "---csv" of the input. */
static int read_csv(void *context, const char *path, struct buf *out, struct err *e)
{
    const struct str *csv = (const struct str *)context;
    (void)path;
    return csv->ptr ? buf_append(out, csv->ptr, csv->len) : err_set(e, ERR_NOT_FOUND, "no file");
}

static void play_gpu(const struct player *p, size_t gpu, double t_s, double counters[SIGNAL_COUNT])
{
    const struct gpu *g = &p->scenario->gpus[gpu];
    double room = g->board->memory_mib - g->board->reserved_mib;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        double value = player_value(p, gpu, (enum signal)i, t_s);
        double counter = player_counter(p, gpu, (enum signal)i, t_s);
        check(isfinite(value) && isfinite(counter));
        if (i == SIGNAL_POWER || i == SIGNAL_UTILIZATION || i == SIGNAL_PCIE_TX)
            check(value >= -1e-6 && counter >= counters[i] - 1e-6 * (1 + fabs(counters[i])));
        counters[i] = counter;
    }
    check(player_value(p, gpu, SIGNAL_UTILIZATION, t_s) <= 100.000001);
    check(player_value(p, gpu, SIGNAL_MEMORY_USED, t_s) <= room + 1e-6);
    const struct mig_layout *l = player_layout(g, t_s);
    for (size_t k = 0; k < l->n_instances; k++)
        check(isfinite(player_instance_counter(p, gpu, l, &l->instances[k], SIGNAL_SM_ACTIVITY, t_s)));
    check(player_throttled_s(p, gpu, 0xff, t_s) <= t_s + 1e-6);
}

static void play(struct scenario *s)
{
    static const double times[] = {0, 0.5, 1, 7.25, 59.9, 61, 1000, 86400};
    struct player p;
    player_init(&p, s);
    for (size_t gpu = 0; gpu < s->n_gpus && gpu < 4; gpu++) {
        double counters[SIGNAL_COUNT] = {0};
        for (size_t i = 0; i < ARRAY_LEN(times); i++) {
            struct player_call call = {"nvmlDeviceGetName", gpu, times[i], false};
            play_gpu(&p, gpu, times[i], counters);
            (void)player_judge(&p, &call);
            check(player_gpu_count(&p, times[i]) <= s->n_gpus);
        }
    }
    player_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const functions[] = {"nvmlInit_v2", "nvmlDeviceGetName", "nvmlDeviceGetPowerUsage"};
    static const char cut[] = "---csv\n";
    struct str text = {(const char *)data, size}, csv = {NULL, 0};
    const char *at = size ? (const char *)memmem(data, size, cut, sizeof(cut) - 1) : NULL;
    if (at) {
        text.len = (size_t)(at - text.ptr);
        csv = (struct str){at + sizeof(cut) - 1, size - text.len - (sizeof(cut) - 1)};
    }
    struct scenario_source source = {"s.yaml", read_csv, functions, ARRAY_LEN(functions), &csv};
    struct err e = {0};
    struct scenario *s = scenario_parse(&source, text, &e);
    if (s) {
        play(s);
        return 0;
    }
    check(!strncmp(e.text, "s.yaml:", 7) && !strchr(e.text, '\n'));
    return 0;
}
