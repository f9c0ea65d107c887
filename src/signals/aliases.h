/* What the metrics of inference engines are called and mean: the facts behind src/signals, in one table (aliases.c). */
#ifndef SIGNALS_ALIASES_H
#define SIGNALS_ALIASES_H

#include "signals/signals.h"

/* X(id, engine). A way to write a page, in the order in which a page that has several is taken: an engine before the
 * server that it runs in. */
#define DIALECTS(X)                                                                                                    \
    X(VLLM, VLLM)                                                                                                      \
    X(SGLANG, SGLANG)                                                                                                  \
    X(TGI, TGI)                                                                                                        \
    X(TRTLLM, TRTLLM)                                                                                                  \
    X(TRITON_TRTLLM, TRITON)                                                                                           \
    X(TRITON, TRITON)                                                                                                  \
    X(LLAMA_CPP, LLAMA_CPP)                                                                                            \
    X(RAY_SERVE, RAY_SERVE)
enum dialect {
#define X(id, engine) DIALECT_##id,
    DIALECTS(X)
#undef X
        DIALECT_COUNT /* none of them */
};

/* What is kept of a page. Levels first, then counters; a counter of a latency's sum is followed by that of its count.
 */
enum quantity {
    QUANTITY_WAITING,
    QUANTITY_RUNNING,
    QUANTITY_KV,      /* a share, 0 to 1 */
    QUANTITY_KV_USED, /* where the share is not written: of QUANTITY_KV_MAX */
    QUANTITY_KV_MAX,
    QUANTITY_CUSTOM_LEVEL,
    QUANTITY_LEVELS, /* how many levels there are: counters begin here */
    QUANTITY_TOKENS = QUANTITY_LEVELS,
    QUANTITY_PROMPT_TOKENS,
    QUANTITY_REQUESTS,
    QUANTITY_INFERENCES, /* of Triton: the items of batched requests */
    QUANTITY_PROGRESS,   /* what moves while requests are computed, not only when one ends */
    QUANTITY_QUEUE_SUM,
    QUANTITY_QUEUE_COUNT,
    QUANTITY_TTFT_SUM,
    QUANTITY_TTFT_COUNT,
    QUANTITY_ITL_SUM,
    QUANTITY_ITL_COUNT,
    QUANTITY_PROMPT_SUM,
    QUANTITY_PROMPT_COUNT,
    QUANTITY_CUSTOM_COUNTER,
    QUANTITY_COUNT
};
enum { COUNTER_COUNT = QUANTITY_COUNT - QUANTITY_LEVELS };

enum alias_kind {
    ALIAS_LEVEL,
    ALIAS_COUNTER,   /* on the page as NAME_total or as NAME; the first wins */
    ALIAS_HISTOGRAM, /* NAME_sum and NAME_count: both or none */
    ALIAS_PAIR,      /* NAME and count_name, counters both: both or none */
};
enum { ALIAS_PARTS = 2 };

/* Rows of one quantity stand newest name first; the first that a page has wins, and no two are added (cases O24, O25,
 * O44). */
struct alias {
    enum quantity quantity;
    enum dialect dialect;
    unsigned also; /* bits of dialects that use this row too, without being recognised by it */
    enum alias_kind kind;
    const char *name;          /* with its colon; `:` and `_` are the same (case O54) */
    const char *label, *value; /* only series with this label; NULL all */
    const char *count_name;    /* ALIAS_PAIR */
    double scale;              /* to the signal's unit */
};
extern const struct alias aliases[];
extern const size_t aliases_len;

enum { ALIAS_NAME_MAX = 136 };
/* The name on a page of one part of a row; false where the row has no such part. */
bool alias_name(const struct alias *a, int part, char ret[ALIAS_NAME_MAX]);

/* May this label tell two series apart that both count? Ranks that do the same work, processes that report the same
 * engine, and priorities (SGLang: the one without is the total) may not: of such series the largest counts. Case O52 */
bool alias_label_counts(enum dialect dialect, bool is_level, struct str label);

enum signals_engine dialect_engine(enum dialect dialect);
/* The names that were looked for on a page of this dialect (DIALECT_COUNT: any), "a, b or c"; static text. */
const char *alias_names(enum quantity quantity, enum dialect dialect);

#endif
