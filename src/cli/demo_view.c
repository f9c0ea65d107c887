/* What the demo prints: plain lines where it is piped, a view that redraws itself on a terminal; and the verdict. */
#include "cli/demo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void demo_show_start(struct demo *d)
{
    (void)printf("keda-gpu-scaler %s demo: %s, agent on %s\n", CLI_VERSION,
                 d->is_real ? "this machine's GPUs, watched only" : "8 simulated H100, one pod each", d->address);
    if (!d->is_real)
        (void)printf("Each step: the load changes, KEDA's three questions go over gRPC, the HPA's arithmetic decides.\n"
                     "The HPA's stabilization window is shortened from 300 s to %d steps.\n",
                     DEMO_WINDOW);
    (void)printf("\n%6s %7s %9s %8s %7s  %-9s %s\n", "time", "load", "value", "target", "active", "replicas", "why");
    (void)fflush(stdout);
}

static void format_line(const struct demo *d, char *out, size_t size)
{
    char load[16] = "-", replicas[24] = "-";
    if (!d->is_real) {
        (void)snprintf(load, sizeof(load), "%.0f%%", d->load);
        (void)snprintf(replicas, sizeof(replicas), d->next_replicas == d->replicas ? "%d" : "%d -> %d", d->replicas,
                       d->next_replicas);
    }
    bool is_fine = d->error.class == ERR_NONE;
    char value[24] = "-", target[24] = "-";
    if (is_fine) {
        (void)snprintf(value, sizeof(value), "%.1f", d->value);
        (void)snprintf(target, sizeof(target), "%g", d->target);
    }
    (void)snprintf(out, size, "%5.0fs %7s %9s %8s %7s  %-9s %s", d->step * (double)d->step_ns / (double)NS_PER_S, load,
                   value, target, is_fine ? d->is_active ? "yes" : "no" : "-", replicas, d->why);
}

/* One bar a GPU: what its pod does. */
static void draw_bars(const struct demo *d)
{
    enum { WIDTH = 40 };
    for (int gpu = 0; gpu < DEMO_GPUS; gpu++) {
        double percent = gpu < d->replicas ? fmin(100, d->load / d->replicas) : 0;
        int filled = (int)lround(percent * WIDTH / 100);
        (void)printf("\033[K  GPU %d ", gpu);
        if (gpu >= d->replicas) {
            (void)printf("\033[2mfree\033[0m\n");
            continue;
        }
        (void)printf("%s", percent > 90 ? "\033[31m" : percent > 60 ? "\033[32m" : "\033[34m");
        for (int i = 0; i < WIDTH; i++)
            (void)fputs(i < filled ? "█" : "·", stdout);
        (void)printf("\033[0m %3.0f%%\n", percent);
    }
}

static void redraw(struct demo *d, const char *line)
{
    if (d->n_lines == DEMO_LINES) {
        memmove(d->lines[0], d->lines[1], sizeof(d->lines[0]) * (DEMO_LINES - 1));
        d->n_lines--;
    }
    (void)str_copy(d->lines[d->n_lines++], sizeof(d->lines[0]), str_of(line));
    if (d->step > 0)
        (void)printf("\033[%dA", DEMO_LINES + DEMO_GPUS + 1);
    for (int i = 0; i < DEMO_LINES; i++)
        (void)printf("\033[K%s\n", i < d->n_lines ? d->lines[i] : "");
    (void)printf("\033[K\n");
    draw_bars(d);
}

void demo_show(struct demo *d)
{
    char line[480];
    format_line(d, line, sizeof(line));
    if (d->is_terminal && !d->is_real)
        redraw(d, line);
    else
        (void)printf("%s\n", line);
    (void)fflush(stdout);
}

int demo_verdict(const struct demo *d)
{
    if (d->step == 0)
        return 1;
    double slowest_ms = (double)d->slowest_ns / (double)NS_PER_MS;
    if (d->is_real || d->is_forever) {
        (void)printf("\n%d steps, %d of them without a value, slowest three answers together %.1f ms.\n", d->step,
                     d->errors, slowest_ms);
        return d->errors == d->step;
    }
    /* 390 % of demand at a target of 80 % ends at 5 (or at 4, which is within the tolerance of 10 %); 50 % at 1. */
    bool has_risen = d->highest == 5 || d->highest == 6, has_fallen = d->replicas == 1;
    bool is_fine = has_risen && has_fallen && d->errors == 0;
    (void)printf(
        "\n%s: replicas went 1 -> %d -> %d while the load went 40 -> 390 -> 50 %%; %d of %d steps without a value; "
        "slowest three answers together %.1f ms.\n",
        is_fine ? "OK" : "FAILED", d->highest, d->replicas, d->errors, d->step, slowest_ms);
    return !is_fine;
}
