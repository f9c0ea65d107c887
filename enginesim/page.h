/* page: what an engine's /metrics says of a model, as text, and the same for tests as JSON. Which names an engine has,
 * with which labels, stands in one table an engine (page_*.c). Pure. */
#ifndef ENGINESIM_PAGE_H
#define ENGINESIM_PAGE_H

#include "enginesim/model.h"

#include "promtext/promtext.h"

/* Append the page. wall_s: seconds since 1970 at the program's time 0. */
void page_write(const struct model *m, double wall_s, struct buf *out);
/* Append what the server does: {"running": ..., "ranks": [...]}. */
void page_write_state(const struct model *m, struct buf *out);

/* ---- for the tables ---- */

/* What a sample is of, for one rank. */
enum page_source {
    PAGE_ZERO,
    PAGE_ONE,
    PAGE_RUNNING,
    PAGE_WAITING,
    PAGE_KV,        /* 0 to 1 */
    PAGE_KV_TOKENS, /* in use */
    PAGE_SLOTS,
    PAGE_BUSY,        /* 0 to 1 */
    PAGE_PROMPT,      /* tokens so far */
    PAGE_OUTPUT,      /* tokens so far */
    PAGE_OUTPUT_RATE, /* tokens a second while the batch is as it is */
    PAGE_FINISHED,
    PAGE_ABORTED,
    PAGE_ARRIVED,
    PAGE_SINCE,   /* seconds since 1970 when the counters were 0 */
    PAGE_MEASURE, /* from here on: the histogram of PAGE_MEASURE + enum queue_measure ... */
    PAGE_SUM = PAGE_MEASURE + QUEUE_MEASURE_COUNT, /* ... and the sum of what it has seen */
};

/* Which labels, and so which ranks one by one. */
enum page_labels {
    PAGE_OF_ENGINE,  /* model_name, engine: each rank */
    PAGE_OF_NAME,    /* model_name: ranks together */
    PAGE_OF_SGLANG,  /* model_name, engine_type, tp_rank, pp_rank, dp_rank, moe_ep_rank: each rank, repeated by tensor
                        rank */
    PAGE_OF_VERSION, /* model, version: ranks together */
    PAGE_OF_GPU,     /* gpu_uuid: ranks together */
    PAGE_OF_NOTHING, /* ranks together */
};

/* When a row is on the page; 0: always. */
enum {
    PAGE_IF_NEW = 1,
    PAGE_IF_OLD = 2,
    PAGE_IF_REASONS = 4,
    PAGE_IF_ONE_PROCESS = 8, /* not with several API servers */
};

/* Rows of the same name follow each other: one family. */
struct page_row {
    struct promtext_family family;
    int source; /* enum page_source, or one of the measures behind it */
    double scale;
    enum page_labels labels;
    struct promtext_label extra; /* of this row; {NULL, NULL}: none */
    unsigned when;
};

struct page_table {
    const struct page_row *rows;
    size_t n_rows;
    bool has_created; /* each counter and histogram is followed by NAME_created */
};
extern const struct page_table page_vllm, page_sglang, page_tgi, page_triton, page_triton_trtllm, page_trtllm,
    page_llamacpp;

/* Short forms for rows. */
#define PAGE_ROW(kind, name_, help_, source_, labels_, when_)                                                          \
    {                                                                                                                  \
        .family = {.name = name_, .help = help_, .type = PROMTEXT_##kind}, .source = source_, .scale = 1,              \
        .labels = labels_, .when = when_                                                                               \
    }
#define PAGE_ROW_OF(kind, name_, help_, source_, scale_, labels_, label_, value_)                                      \
    {                                                                                                                  \
        .family = {.name = name_, .help = help_, .type = PROMTEXT_##kind}, .source = source_, .scale = scale_,         \
        .labels = labels_, .extra = {                                                                                  \
            label_,                                                                                                    \
            value_                                                                                                     \
        }                                                                                                              \
    }

#endif
