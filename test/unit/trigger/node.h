/* For the tests of trigger/: a node of GPUs whose readings a test writes down, on a clock that the test moves. */
#ifndef TEST_TRIGGER_NODE_H
#define TEST_TRIGGER_NODE_H

#include "metadata.h"

#include <stdio.h>

#define MIB 1048576.0
enum { NODE_ARENA_BYTES = 65536 };

struct node {
    struct snapshot_store *store;
    struct snapshot *latest;
    int64_t now_ns;
    struct arena arena;
};

static inline void node_init(struct node *n)
{
    n->store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(n->store)->driver = SNAPSHOT_DRIVER_OK;
    n->latest = NULL;
    n->now_ns = 1000 * NS_PER_S;
    arena_init(&n->arena, NODE_ARENA_BYTES);
}

static inline void node_fini(struct node *n)
{
    snapshot_unref(n->latest);
    snapshot_store_free(n->store);
    arena_fini(&n->arena);
}
#define NODE __attribute__((cleanup(node_fini))) struct node

static inline struct snapshot_device *node_add(struct node *n, enum snapshot_kind kind, int index, const char *uuid)
{
    struct snapshot_device d = {.kind = kind, .index = index, .gpu_instance = -1, .compute_instance = -1};
    (void)str_copy(d.uuid, sizeof(d.uuid), str_of(uuid));
    (void)str_copy(d.product, sizeof(d.product), str_of("NVIDIA H100 80GB HBM3"));
    return snapshot_store_add(n->store, &d);
}

/* A MIG device of the GPU `index`, whose UUID is GPU-<index>. */
static inline struct snapshot_device *node_add_mig(struct node *n, int index, int gpu_instance, int compute_instance)
{
    struct snapshot_device d = {
        .kind = SNAPSHOT_MIG, .index = index, .gpu_instance = gpu_instance, .compute_instance = compute_instance};
    (void)snprintf(d.uuid, sizeof(d.uuid), "MIG-%d-%d-%d", index, gpu_instance, compute_instance);
    (void)snprintf(d.parent_uuid, sizeof(d.parent_uuid), "GPU-%d", index);
    (void)str_copy(d.mig_profile, sizeof(d.mig_profile), str_of("1g.10gb"));
    (void)str_copy(d.product, sizeof(d.product), str_of("NVIDIA H100 80GB HBM3"));
    return snapshot_store_add(n->store, &d);
}

static inline void node_read(struct node *n, const char *uuid, enum snapshot_field field, double value)
{
    struct snapshot_device *d = snapshot_store_find(n->store, uuid);
    assert_non_null(d);
    snapshot_store_record(n->store, d, field, value, n->now_ns);
}

static inline void node_fail(struct node *n, const char *uuid, enum snapshot_field field, enum snapshot_status status)
{
    struct snapshot_device *d = snapshot_store_find(n->store, uuid);
    assert_non_null(d);
    snapshot_store_fail(d, field, status);
}

static inline void node_publish(struct node *n)
{
    snapshot_store_sort(n->store);
    snapshot_unref(n->latest);
    n->latest = snapshot_store_publish(n->store, n->now_ns);
}

static inline void node_wait(struct node *n, double seconds)
{
    n->now_ns += (int64_t)(seconds * 1e9);
}

/* GPUs 0, 1, ... with these utilizations, read once. */
static inline void node_with(struct node *n, const double *utilizations, size_t count)
{
    node_init(n);
    for (size_t i = 0; i < count; i++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%zu", i);
        (void)node_add(n, SNAPSHOT_GPU, (int)i, uuid);
        node_read(n, uuid, SNAPSHOT_UTILIZATION, utilizations[i]);
    }
    node_publish(n);
}
#define NODE_WITH(n, ...)                                                                                              \
    node_with(&(n), (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* What the trigger makes of the node now. The inputs live until the next call. */
static inline void node_evaluate(struct node *n, const struct trigger *t, struct trigger_evaluation *ret)
{
    arena_fini(&n->arena);
    arena_init(&n->arena, NODE_ARENA_BYTES);
    trigger_evaluate(t, n->latest, n->now_ns, TRIGGER_ASK_ALL, &n->arena, ret);
}

/* What comes out for a node: the value or -1, and active as 1, 0 or -1 for an error. */
struct answer {
    double value;
    int active;
    struct trigger_evaluation all;
    struct trigger_explanation said;
};

/* Each question by itself has the same answer as both together, in the same words. */
static inline void assert_parts_agree(struct node *n, const struct answer *a)
{
    ARENA_AUTO struct arena arena;
    arena_init(&arena, NODE_ARENA_BYTES);
    struct trigger_evaluation part;
    struct trigger_explanation said;
    trigger_evaluate(a->all.trigger, n->latest, n->now_ns, TRIGGER_ASK_VALUE, &arena, &part);
    trigger_explain(&part, &said);
    assert_int_equal(part.value_error.class, a->all.value_error.class);
    assert_string_equal(part.value_error.text, a->all.value_error.text);
    assert_double_same(part.value, a->all.value);
    assert_string_equal(said.rule, a->said.rule);
    assert_string_equal(said.active_rule, "");
    assert_int_equal(said.n_warnings, a->said.n_warnings);
    trigger_evaluate(a->all.trigger, n->latest, n->now_ns, TRIGGER_ASK_ACTIVITY, &arena, &part);
    trigger_explain(&part, &said);
    assert_int_equal(part.active_error.class, a->all.active_error.class);
    assert_string_equal(part.active_error.text, a->all.active_error.text);
    assert_int_equal(part.is_active, a->all.is_active);
    assert_double_same(part.activity, a->all.activity);
    assert_string_equal(said.active_rule, a->said.active_rule);
    assert_string_equal(said.rule, "");
}

static inline struct answer ask(struct node *n, struct metadata m)
{
    static struct trigger *last; /* answers refer to it until the next question */
    trigger_unref(last);
    last = parse_with(&agent_settings, m);
    struct answer a;
    node_evaluate(n, last, &a.all);
    trigger_explain(&a.all, &a.said);
    assert_parts_agree(n, &a);
    a.value = a.all.value_error.class == ERR_NONE ? a.all.value : -1;
    a.active = a.all.active_error.class == ERR_NONE ? a.all.is_active : -1;
    return a;
}
#define ASK(n, ...)     ask(&(n), METADATA(__VA_ARGS__))
#define VALUE(n, ...)   (ASK(n __VA_OPT__(, ) __VA_ARGS__).value)
#define ACTIVE(n, ...)  (ASK(n __VA_OPT__(, ) __VA_ARGS__).active)
#define WARNED(a, part) has_warning((const char(*)[TRIGGER_TEXT_MAX])(a).said.warnings, (a).said.n_warnings, (part))

static inline void assert_refused(const struct answer *a, enum err_class class, const char *part)
{
    assert_int_equal(a->all.value_error.class, class);
    assert_contains(a->all.value_error.text, part);
}

static inline void assert_both_refused(const struct answer *a, enum err_class class, const char *part)
{
    assert_refused(a, class, part);
    assert_int_equal(a->all.active_error.class, class);
    assert_string_equal(a->all.active_error.text, a->all.value_error.text);
}

#endif
