/* What the agent logs of snapshots: changes, each once, and never the readings. */
#include "agent/agent_private.h"

#include "log/capture.h"
#include "trigger/node.h"

struct rig {
    struct node node;
    struct agent agent;
    struct snapshot *previous;
};

static void rig_stop(struct rig *r)
{
    snapshot_unref(r->previous);
    node_fini(&r->node);
}
#define RIG(r)                                                                                                         \
    __attribute__((cleanup(rig_stop))) struct rig r = {.previous = NULL};                                              \
    node_init(&r.node)

/* The node is read again; what the agent logs of it. */
static char *log_next(struct rig *r)
{
    node_wait(&r->node, 1);
    node_publish(&r->node);
    struct capture c = capture_begin();
    agent_log_snapshot(&r->agent, r->previous, r->node.latest);
    char *text = capture_end(&c);
    snapshot_unref(r->previous);
    r->previous = snapshot_ref(r->node.latest);
    return text;
}

/* Exactly these lines, by a part of each; nothing more the next time. */
static void assert_logs(struct rig *r, const char *const *parts)
{
    MEM_AUTO char *text = log_next(r);
    size_t n = 0;
    for (; parts[n]; n++)
        if (count(text, parts[n]) != 1)
            fail_msg("not once \"%s\" in:\n%s", parts[n], text);
    if (count(text, "\n") != n)
        fail_msg("%zu lines instead of %zu:\n%s", count(text, "\n"), n, text);
    MEM_AUTO char *again = log_next(r);
    assert_string_equal(again, "");
}
#define LOGS(r, ...) assert_logs(&(r), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void set_driver(struct rig *r, enum snapshot_driver_state state, const char *text)
{
    struct snapshot *header = snapshot_store_header(r->node.store);
    header->driver = state;
    (void)str_copy(header->driver_text, sizeof(header->driver_text), str_of(text));
}

static void test_the_drivers_state_is_logged_when_it_changes(void **state)
{
    (void)state;
    RIG(r);
    set_driver(&r, SNAPSHOT_DRIVER_STARTING, "");
    LOGS(r, "level=info component=nvml msg=\"driver is not read\" state=starting");
    set_driver(&r, SNAPSHOT_DRIVER_NO_LIBRARY, "install it");
    LOGS(r, "level=warn component=nvml msg=\"driver is not available; keeps trying\" state=no_library "
            "reason=\"install it\"");
    set_driver(&r, SNAPSHOT_DRIVER_NO_LIBRARY, "tried 3 times"); /* a text that moves is no change */
    LOGS(r);
    set_driver(&r, SNAPSHOT_DRIVER_OK, "");
    LOGS(r, "level=info component=nvml msg=\"driver is ready\"");
    set_driver(&r, SNAPSHOT_DRIVER_RELEASED, "");
    LOGS(r, "level=info component=nvml msg=\"driver is not read\" state=released");
}

static void test_devices_are_logged_when_they_come_fall_silent_return_and_go(void **state)
{
    (void)state;
    RIG(r);
    (void)node_add(&r.node, SNAPSHOT_GPU, 0, "GPU-a");
    (void)node_add(&r.node, SNAPSHOT_GPU, 1, "GPU-b");
    LOGS(r, "driver is ready", "\"device found\" index=0 uuid=GPU-a", "\"device found\" index=1 uuid=GPU-b");
    node_read(&r.node, "GPU-a", SNAPSHOT_UTILIZATION, 99);
    LOGS(r);
    struct snapshot_device *b = snapshot_store_find(r.node.store, "GPU-b");
    b->is_lost = true;
    (void)str_copy(b->lost_reason, sizeof(b->lost_reason), str_of("fell off\nthe bus"));
    LOGS(r, "level=warn component=nvml msg=\"device lost; its readings are missing from now on\" uuid=GPU-b "
            "reason=\"fell off\\nthe bus\"");
    b->is_lost = false;
    LOGS(r, "\"device is back\" index=1 uuid=GPU-b");
    snapshot_store_remove(r.node.store, "GPU-a");
    LOGS(r, "\"device gone\" index=0 uuid=GPU-a");
    snapshot_store_remove(r.node.store, "GPU-b"); /* another incarnation of the same board */
    (void)node_add(&r.node, SNAPSHOT_GPU, 1, "GPU-b");
    LOGS(r, "\"device gone\" index=1 uuid=GPU-b", "\"device found\" index=1 uuid=GPU-b");
}

static void test_mig_devices_are_logged_as_a_number_by_gpu(void **state)
{
    (void)state;
    RIG(r);
    for (int gpu = 0; gpu < 8; gpu++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%d", gpu);
        (void)node_add(&r.node, SNAPSHOT_MIG_PARENT, gpu, uuid);
        for (int i = 0; i < 7; i++)
            (void)node_add_mig(&r.node, gpu, i, 0);
    }
    MEM_AUTO char *text = log_next(&r);
    assert_int_equal(count(text, "device found"), 8);
    assert_int_equal(count(text, "before=0 now=7"), 8);
    assert_int_equal(count(text, "\n"), 1 + 8 + 8);
    snapshot_store_remove(r.node.store, "MIG-3-6-0");
    LOGS(r, "\"MIG devices changed\" index=3 uuid=GPU-3 before=7 now=6");
}

static void test_xids_are_logged_each_time_they_happen(void **state)
{
    (void)state;
    RIG(r);
    struct snapshot_device *gpu = node_add(&r.node, SNAPSHOT_GPU, 0, "GPU-a");
    LOGS(r, "driver is ready", "device found");
    gpu->xids[gpu->n_xids++] = (struct snapshot_xid){.xid = 79, .count = 1};
    LOGS(r, "level=warn component=nvml msg=xid xid=79 uuid=GPU-a count=1");
    gpu->xids[gpu->n_xids++] = (struct snapshot_xid){.xid = 48, .count = 1};
    gpu->xids[0].count = 3;
    LOGS(r, "xid=79 uuid=GPU-a count=3", "xid=48 uuid=GPU-a count=1");
}

static void test_the_state_of_owners_is_logged_when_it_changes(void **state)
{
    (void)state;
    static const struct {
        struct snapshot_owners owners;
        const char *line; /* NULL: nothing */
    } rows[] = {
        {{.state = SNAPSHOT_OWNERS_NO_SOCKET, .text = "no file"},
         "level=info component=owners msg=\"pods are not known; keeps looking\" reason=\"no file\""},
        {{.state = SNAPSHOT_OWNERS_NO_SOCKET, .text = "no file still"}, NULL},
        {{.state = SNAPSHOT_OWNERS_OK, .n_pods = 3, .n_unmatched = 1},
         "level=info component=owners msg=\"pods are known\" pods=3 holdings=0 unmatched=1"},
        {{.state = SNAPSHOT_OWNERS_OK, .n_pods = 4}, NULL},
        {{.state = SNAPSHOT_OWNERS_DENIED, .text = "run as root"},
         "level=warn component=owners msg=\"pods cannot be read; keeps trying\" state=denied reason=\"run as root\""},
        {{.state = SNAPSHOT_OWNERS_FAILED, .text = "late"}, "state=failed reason=late"},
    };
    struct agent agent = {.config = NULL};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct capture c = capture_begin();
        agent_log_owners(&agent, &rows[i].owners);
        MEM_AUTO char *text = capture_end(&c);
        if (count(text, "\n") != (rows[i].line ? 1U : 0U) || (rows[i].line && !count(text, rows[i].line)))
            fail_msg("row %zu: %s", i, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_state_of_owners_is_logged_when_it_changes),
        cmocka_unit_test(test_the_drivers_state_is_logged_when_it_changes),
        cmocka_unit_test(test_devices_are_logged_when_they_come_fall_silent_return_and_go),
        cmocka_unit_test(test_mig_devices_are_logged_as_a_number_by_gpu),
        cmocka_unit_test(test_xids_are_logged_each_time_they_happen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
