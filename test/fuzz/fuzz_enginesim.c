/* Scenarios of simulated model servers: whatever is accepted must play with counters that never fall, conserve its
 * requests, and give pages that are valid expositions; whatever is refused must be refused in one line with its place.
 */
#include "enginesim/page.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What one input may cost: the rest of a wild scenario is not played. */
enum { SERVERS_MAX = 3, RANKS_MAX = 4, PAD_MAX = 100000, ARRIVALS_MAX = 2000 };

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_sample(void *context, const struct promtext_read_sample *sample)
{
    (void)context;
    check(isfinite(sample->value) && sample->value >= 0);
}

static void check_page(const struct model *m)
{
    BUF_AUTO struct buf page;
    struct err e = {0};
    size_t n_bad = 0;
    buf_init(&page, 4 << 20);
    page_write(m, 1e9, &page);
    check(!page.is_overflowed);
    check(promtext_read((struct str){page.data, page.len}, check_sample, NULL, &n_bad, &e) == 0 && n_bad == 0);
    buf_reset(&page);
    page_write_state(m, &page);
    check(!page.is_overflowed && page.len > 0);
}

static void play(const struct script_server *server)
{
    static const double times_s[] = {0, 0.02, 0.5, 1, 2.5, 4};
    struct model m;
    double low, high, tokens = 0;
    curve_bounds(&server->arrivals, &low, &high);
    if (server->ranks > RANKS_MAX || server->pad_bytes > PAD_MAX || high > ARRIVALS_MAX)
        return;
    model_init(&m, server, 1, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(times_s); i++) {
        model_advance(&m, times_s[i]);
        for (size_t rank = 0; rank < m.n_ranks; rank++) {
            const struct queue *q = &m.ranks[rank].queue;
            double open = (double)(q->running.n + q->waiting.n);
            check(q->arrived == q->finished + q->aborted + q->rejected + open);
            check(q->running.n <= server->slots && model_kv_percent(&m, rank) <= 100);
        }
        check(server->n_faults || queue_output_tokens(&m.ranks[0].queue) >= tokens);
        tokens = queue_output_tokens(&m.ranks[0].queue);
        check_page(&m);
    }
    model_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct script_source source = {.name = "s.yaml"};
    struct err e = {0};
    struct script *script = script_parse(&source, (struct str){(const char *)data, size}, &e);
    if (!script) {
        check(!strncmp(e.text, "s.yaml:", 7) && !strchr(e.text, '\n'));
        return 0;
    }
    for (size_t i = 0; i < script->n_servers && i < SERVERS_MAX; i++)
        play(&script->servers[i]);
    script_free(script);
    return 0;
}
