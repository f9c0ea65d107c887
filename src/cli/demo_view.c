/* What the demo prints: plain lines where it is piped, a view that redraws itself on a terminal; and the verdict. */
#include "cli/demo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80, BAR_MAX = 40, INTERRUPTED = 130 };

/* ---- what the terminal can do ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* The first of the variables that name the locale of characters, in their order. */
static bool has_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static void look_at_terminal(struct demo *d)
{
    const char *term = getenv("TERM");
    d->is_live = isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    d->has_colour = d->is_live && !is_set("NO_COLOR");
    d->is_utf8 = has_utf8_locale();
}

struct screen {
    int rows, columns;
};

static struct screen screen_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return (struct screen){.rows = 24, .columns = COLUMNS};
    return (struct screen){.rows = size.ws_row, .columns = size.ws_col};
}

/* ---- lines ---- */

static bool has_engine(const struct demo *d)
{
    return *d->engine.name != '\0';
}

static void format_heading(const struct demo *d, char *out, size_t size)
{
    if (has_engine(d))
        (void)snprintf(out, size, "%6s %8s %8s %8s %5s %7s %7s  %-9s %s", "time", "demand", "waiting", "running", "KV",
                       "value", "target", "replicas", "why");
    else
        (void)snprintf(out, size, "%6s %7s %9s %8s %7s  %-9s %s", "time", "load", "value", "target", "active",
                       "replicas", "why");
}

void demo_show_start(struct demo *d)
{
    char heading[96];
    format_heading(d, heading, sizeof(heading));
    look_at_terminal(d);
    (void)printf("keda-gpu-scaler %s demo: %s, agent on %s\n", CLI_VERSION,
                 d->is_real ? "this machine's GPUs, watched only" : "8 simulated H100, one pod each", d->address);
    if (has_engine(d))
        (void)printf("Simulated too: requests, and a page of %s with one rank for each replica,\n"
                     "as a router over them shows it: http://%s/metrics. The agent\n"
                     "reads it, and the value is requests waiting and running. The GPUs show 100 %%\n"
                     "from one request on.\n",
                     d->engine.name, d->engine.address);
    if (!d->is_real)
        (void)printf("Each step the load changes, KEDA's three questions go over gRPC, and the HPA's\n"
                     "arithmetic decides; its stabilization window of 300 s is shortened to %d steps.\n",
                     DEMO_WINDOW);
    (void)printf("\n");
    if (!d->is_live || d->is_real)
        (void)printf("%s\n", heading);
    d->is_unread = !cli_flush();
}

static void format_line(const struct demo *d, char *out, size_t size)
{
    char load[16] = "-", replicas[24] = "-";
    if (!d->is_real) {
        (void)snprintf(load, sizeof(load), has_engine(d) ? "%.1f/s" : "%.0f%%", d->load);
        (void)snprintf(replicas, sizeof(replicas), d->next_replicas == d->replicas ? "%d" : "%d -> %d", d->replicas,
                       d->next_replicas);
    }
    bool is_fine = d->error.class == ERR_NONE;
    char value[24] = "-", target[24] = "-";
    if (is_fine) {
        (void)snprintf(value, sizeof(value), "%.1f", d->value);
        (void)snprintf(target, sizeof(target), "%g", d->target);
    }
    double time_s = d->step * (double)d->step_ns / (double)NS_PER_S;
    if (has_engine(d))
        (void)snprintf(out, size, "%5.0fs %8s %8.0f %8.0f %4.0f%% %7s %7s  %-9s %s", time_s, load, d->engine.waiting,
                       d->engine.running, d->engine.kv_percent, value, target, replicas, d->why);
    else
        (void)snprintf(out, size, "%5.0fs %7s %9s %8s %7s  %-9s %s", time_s, load, value, target,
                       is_fine ? d->is_active ? "yes" : "no" : "-", replicas, d->why);
}

/* ---- the live view ---- */

/* A row of the view: cut at the screen's edge, for a row that wraps would shift all that follow. */
static void put_row(const char *text, int columns)
{
    int len = (int)strlen(text);
    if (len >= columns)
        for (len = columns - 1; len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80;)
            len--;
    (void)printf("%.*s\033[K\n", len, text);
}

static void draw_bar(const struct demo *d, double percent, int width)
{
    static const char *const colours[] = {"\033[34m", "\033[32m", "\033[31m"};
    const char *full = d->is_utf8 ? "█" : "#", *empty = d->is_utf8 ? "·" : ".";
    int filled = (int)lround(percent * width / 100);
    if (d->has_colour)
        (void)fputs(colours[percent > 90 ? 2 : percent > 60 ? 1 : 0], stdout);
    for (int i = 0; i < width; i++)
        (void)fputs(i < filled ? full : empty, stdout);
    (void)printf("%s %3.0f%%", d->has_colour ? "\033[0m" : "", percent);
}

/* One bar a GPU: what its pod does; of a model server how full its batch is. */
static void draw_bars(const struct demo *d, int columns)
{
    int width = columns - 16 < BAR_MAX ? columns - 16 : BAR_MAX;
    for (int gpu = 0; gpu < DEMO_GPUS; gpu++) {
        (void)printf("  %s %d ", has_engine(d) ? "pod" : "GPU", gpu);
        if (gpu < d->replicas)
            draw_bar(d, has_engine(d) ? d->engine.batch_percent[gpu] : fmin(100, d->load / d->replicas), width);
        else
            (void)fputs(d->has_colour ? "\033[2mfree\033[0m" : "free", stdout);
        (void)printf("\033[K\n");
    }
}

static void keep_line(struct demo *d, const char *line)
{
    if (d->n_lines == DEMO_LINES) {
        memmove(d->lines[0], d->lines[1], sizeof(d->lines[0]) * (DEMO_LINES - 1));
        d->n_lines--;
    }
    (void)str_copy(d->lines[d->n_lines++], sizeof(d->lines[0]), str_of(line));
}

/* Heading, the newest lines, a gap, the bars: as many lines as the screen has room for. */
static void redraw(struct demo *d, struct screen screen)
{
    char heading[96];
    format_heading(d, heading, sizeof(heading));
    int room = screen.rows - DEMO_GPUS - 3;
    int n_lines = room < DEMO_LINES ? room : DEMO_LINES;
    int first = d->n_lines > n_lines ? d->n_lines - n_lines : 0;
    if (d->n_drawn)
        (void)printf("\033[%dA\r\033[J", d->n_drawn);
    put_row(heading, screen.columns);
    for (int i = 0; i < n_lines; i++)
        put_row(first + i < d->n_lines ? d->lines[first + i] : "", screen.columns);
    put_row("", screen.columns);
    draw_bars(d, screen.columns);
    d->n_drawn = n_lines + DEMO_GPUS + 2;
}

void demo_show(struct demo *d)
{
    enum { ROWS_MIN = DEMO_GPUS + 6, COLUMNS_MIN = 40 };
    char line[480];
    format_line(d, line, sizeof(line));
    keep_line(d, line);
    struct screen screen = screen_size();
    if (d->is_live && !d->is_real && screen.rows >= ROWS_MIN && screen.columns >= COLUMNS_MIN)
        redraw(d, screen);
    else
        (void)printf("%s\n", line);
    d->is_unread = !cli_flush();
}

/* ---- the verdict ---- */

static const char *times(int n)
{
    return n == 1 ? "step" : "steps";
}

/* 15 requests a step that take two steps each are 30 in flight: 5 replicas at a target of 6. The queue of the steep
 * rise may ask for more before. */
static int engine_verdict(const struct demo *d, double slowest_ms)
{
    bool has_settled = d->settled == 5 || d->settled == 6, has_fallen = d->replicas == 1;
    bool is_fine = has_settled && has_fallen && d->errors == 0;
    double unit = (double)NS_PER_S / (double)d->step_ns;
    (void)printf("\n%s: replicas went 1 -> %d -> %d -> %d while demand went %.3g -> %.3g -> %.3g requests/s; %d of %d "
                 "steps without a value; slowest three answers together %.1f ms.\n",
                 is_fine ? "OK" : "FAILED", d->highest, d->settled, d->replicas, 1.5 * unit, 15 * unit, 1.5 * unit,
                 d->errors, d->step, slowest_ms);
    return !is_fine;
}

int demo_verdict(const struct demo *d)
{
    double slowest_ms = (double)d->slowest_ns / (double)NS_PER_MS;
    bool is_interrupted = !d->is_over && !d->is_forever;
    if (d->is_unread)
        return 1;
    if (d->step > 0 && d->errors == d->step) {
        int n = d->step + (d->n_waits ? d->n_waits - 1 : 0);
        (void)printf("\nFAILED: no value in %d %s: %s\n", n, times(n), d->why);
        return is_interrupted ? INTERRUPTED : 1;
    }
    if (is_interrupted || d->is_real || d->is_forever || d->has_own_metadata) {
        (void)printf("\n%s%d %s, %d of them without a value, slowest three answers together %.1f ms.\n",
                     is_interrupted ? "Interrupted: " : "", d->step, times(d->step), d->errors, slowest_ms);
        return is_interrupted ? INTERRUPTED : 0;
    }
    if (has_engine(d))
        return engine_verdict(d, slowest_ms);
    /* 390 % of demand at a target of 80 % ends at 5 (or at 4, which is within the tolerance of 10 %); 50 % at 1. */
    bool has_risen = d->highest == 5 || d->highest == 6, has_fallen = d->replicas == 1;
    bool is_fine = has_risen && has_fallen && d->errors == 0;
    (void)printf("\n%s: replicas went 1 -> %d -> %d while the load went 40 -> 390 -> 50 %%; %d of %d steps without a "
                 "value; slowest three answers together %.1f ms.\n",
                 is_fine ? "OK" : "FAILED", d->highest, d->replicas, d->errors, d->step, slowest_ms);
    return !is_fine;
}
