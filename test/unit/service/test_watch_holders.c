/* Fleet/Watch: pods on devices, their readings and minutes; sizes; and any history: what a hub has is what a hub that
 * comes now is told. */
#include "hub.h"

enum { PODS_MAX = 4200 };

/* Holders as attribution makes them, by hand. */
struct pods {
    struct snapshot_holders list;
    struct snapshot_holder of[PODS_MAX];
    struct snapshot_minutes minutes[8];
    struct snapshot_store *store;
    const struct snapshot *uses;
};

static struct pods pods;

static void pods_init(struct rig *r)
{
    snapshot_unref(pods.uses);
    snapshot_store_free(pods.store);
    memset(&pods, 0, sizeof(pods));
    pods.list = (struct snapshot_holders){.sight = SNAPSHOT_SIGHT_OK, .holders = pods.of};
    pods.store = snapshot_store_new(NS_PER_S);
    r->holders = &pods.list;
}

static int pods_fini(void **state)
{
    (void)state;
    snapshot_unref(pods.uses);
    snapshot_store_free(pods.store);
    memset(&pods, 0, sizeof(pods));
    return 0;
}

/* A pod on a device from now on, the last of the list. */
static struct snapshot_holder *hold(struct rig *r, const char *uuid, const char *pod)
{
    static uint32_t last_id;
    const struct snapshot_device *d = snapshot_find_device(r->node.latest, uuid);
    assert_non_null(d);
    struct snapshot_holder *h = &pods.of[pods.list.n_holders++];
    *h = (struct snapshot_holder){.id = ++last_id,
                                  .device_id = d->id,
                                  .uuid = uuid,
                                  .ns = "ml",
                                  .pod = pod,
                                  .pod_uid = "",
                                  .is_listed = true,
                                  .shares = 1,
                                  .since_ns = r->node.now_ns};
    return h;
}

static void let_go(size_t at)
{
    pods.list.n_holders--;
    memmove(&pods.of[at], &pods.of[at + 1], (pods.list.n_holders - at) * sizeof(pods.of[0]));
}

/* What the pod's processes do, as far as it is not negative; seen after publish_uses. */
static void use(struct rig *r, const struct snapshot_holder *h, double utilization, double memory)
{
    char uuid[16];
    (void)snprintf(uuid, sizeof(uuid), "%u", h->id);
    struct snapshot_device *d = snapshot_store_find(pods.store, uuid), fresh = {.index = (int)h->id};
    (void)str_copy(fresh.uuid, sizeof(fresh.uuid), str_of(uuid));
    if (!d)
        d = snapshot_store_add(pods.store, &fresh);
    if (utilization >= 0)
        snapshot_store_record(pods.store, d, SNAPSHOT_UTILIZATION, utilization, r->node.now_ns);
    if (memory >= 0)
        snapshot_store_record(pods.store, d, SNAPSHOT_MEMORY_USED, memory, r->node.now_ns);
}

static void publish_uses(struct rig *r)
{
    char uuid[16];
    snapshot_unref(pods.uses);
    pods.list.uses = pods.uses = snapshot_store_publish(pods.store, r->node.now_ns);
    pods.list.taken_ns = r->node.now_ns;
    for (size_t i = 0; i < pods.list.n_holders; i++) {
        (void)snprintf(uuid, sizeof(uuid), "%u", pods.of[i].id);
        pods.of[i].use = snapshot_find_device(pods.uses, uuid);
    }
}

static struct hub_readings *readings_of(struct hub *h, const struct snapshot_holder *holder)
{
    struct hub_readings *r = hub_find(&h->holders, holder->id);
    assert_non_null(r);
    return r;
}

static bool has_own(struct hub *h, const struct snapshot_holder *holder)
{
    return h->has_own[readings_of(h, holder) - h->holders.items];
}

static size_t cycle_at(struct rig *r, struct hub *h, double seconds, double utilization)
{
    node_wait(&r->node, seconds);
    node_read(&r->node, "GPU-0", SNAPSHOT_UTILIZATION, utilization);
    node_publish(&r->node);
    return hub_tick(r, h);
}

/* ---- who holds what ---- */

static void test_a_holder_is_told_with_all_that_is_known_of_it(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *holder = hold(&r, "GPU-0", "llm-0");
    holder->pod_uid = "0b1f";
    holder->shares = 3;
    holder->n_processes = 2;
    holder->since_ns = r.node.now_ns - 90 * NS_PER_S;
    (void)snprintf(pods.list.text, sizeof(pods.list.text), "see the host's processes");
    pods.list.sight = SNAPSHOT_SIGHT_NO_HOST_PIDS;
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}));
    assert_string_equal(h.last->node->sight, "no_host_pids");
    assert_string_equal(h.last->node->sight_text, "see the host's processes");
    assert_int_equal(h.last->n_holders, 1);
    const hub_holder *m = h.last->holders[0];
    assert_int_equal(m->id, holder->id);
    assert_int_equal(m->device, r.node.latest->devices[0].id);
    assert_string_equal(m->namespace_, "ml");
    assert_string_equal(m->pod, "llm-0");
    assert_string_equal(m->pod_uid, "0b1f");
    assert_true(m->is_listed);
    assert_false(m->is_shared || m->is_measured);
    assert_int_equal(m->shares, 3);
    assert_int_equal(m->processes, 2);
    assert_int_equal(m->held_ms, 90000);
    assert_int_equal(m->n_memory_low, 0);
    (void)cycle_at(&r, &h, 1, 50);
    assert_int_equal(h.last->n_holders, 0); /* that time passes is no change */
    holder->n_processes = 1;
    (void)cycle_at(&r, &h, 1, 50);
    assert_int_equal(h.last->n_holders, 1);
    assert_int_equal(h.last->holders[0]->processes, 1);
    assert_int_equal(h.last->holders[0]->held_ms, 92000);
}

static void test_holders_come_and_go_and_go_with_their_devices(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50, 70);
    pods_init(&r);
    uint32_t first = hold(&r, "GPU-0", "a")->id;
    (void)hold(&r, "GPU-1", "b");
    hub_watch(&r, &h, WANTS({"utilization", 0, 0}));
    assert_int_equal(h.holders.n, 2);
    let_go(0);
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(h.last->n_removed_holders, 1);
    assert_int_equal(h.last->removed_holders[0], first);
    snapshot_store_remove(r.node.store, "GPU-1"); /* who made the holders has not seen it yet */
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(h.last->n_removed_devices, 1);
    assert_int_equal(h.last->n_removed_holders, 0);
    assert_int_equal(h.holders.n, 0);
    (void)hold(&r, "GPU-0", "c");
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(h.last->n_holders, 1);
    assert_string_equal(h.last->holders[0]->pod, "c");
}

/* ---- readings of exclusive holders ---- */

static void test_a_young_holder_has_what_its_device_did_since_it_came(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 90);
    pods_init(&r);
    for (int i = 0; i < 30; i++) {
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 90);
        node_publish(&r.node);
    }
    struct snapshot_holder *holder = hold(&r, "GPU-0", "llm-0");
    holder->since_ns += NS_PER_S / 2;
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}, {"utilization", 0, 5}));
    struct hub_readings *own = readings_of(&h, holder);
    assert_int_equal(own->of[0].status, STATUS(NOT_YET)); /* the device's is of the time before */
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).mean, 90);
    for (int i = 1; i <= 59; i++) {
        (void)cycle_at(&r, &h, 1, 10);
        own = readings_of(&h, holder);
        assert_true(has_own(&h, holder));
        assert_int_equal(own->of[0].status, STATUS(OK));
        assert_double_same(own->of[0].mean, 10);
        assert_double_same(own->of[0].peak, i == 1 ? 10 : own->of[0].peak);
        assert_double_near(own->of[0].integral, hub_reading(&r, &h, "GPU-0", 0).integral, 1e-6);
        assert_double_near(own->of[0].valid_s, hub_reading(&r, &h, "GPU-0", 0).valid_s, 1e-6);
    }
    assert_double_same(own->of[1].mean, 10);
    assert_double_same(hub_reading(&r, &h, "GPU-0", 0).peak, 90); /* a minute back */
    assert_double_same(own->of[0].peak, 10);
    (void)cycle_at(&r, &h, 1, 10); /* 59.5 s */
    assert_true(has_own(&h, holder));
    (void)cycle_at(&r, &h, 1, 10);
    assert_false(has_own(&h, holder));
    assert_int_equal(h.last->n_holder_readings, 1);
    assert_int_equal(h.last->holder_readings[0]->n_readings, 0);
    (void)cycle_at(&r, &h, 1, 10);
    assert_int_equal(h.last->n_holder_readings, 0);
}

static void test_a_holder_is_young_for_as_long_as_windows_and_ages_reach(void **state)
{
    (void)state;
    static const struct {
        double window, activation_window, held;
        bool is_young;
    } rows[] = {{15, 60, 59.9, true}, {15, 60, 60, false}, {90, 60, 89.9, true},  {90, 60, 90, false},
                {0, 0, 4.9, true},    {0, 0, 5, false},    {300, 300, 299, true}, {300, 300, 300, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        HUB h = {0};
        RIG_WITH(r, 50);
        pods_init(&r);
        struct snapshot_holder *holder = hold(&r, "GPU-0", "llm-0");
        holder->since_ns = r.node.now_ns - (int64_t)(rows[i].held * 1e9);
        hub_watch(&r, &h, WANTS({"utilization", rows[i].window, rows[i].activation_window}, {"power", 0, 0}));
        if (has_own(&h, holder) != rows[i].is_young)
            fail_msg("row %zu", i);
    }
}

static void test_a_young_holder_of_a_device_that_fails_is_missing(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *holder = hold(&r, "GPU-0", "llm-0");
    holder->since_ns += NS_PER_S;
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}));
    assert_int_equal(readings_of(&h, holder)->of[0].status, STATUS(NOT_YET));
    (void)hub_cycle(&r, &h, 6); /* held for 5 s */
    assert_int_equal(readings_of(&h, holder)->of[0].status, STATUS(NOT_YET));
    (void)hub_cycle(&r, &h, 0.1);
    assert_int_equal(readings_of(&h, holder)->of[0].status, STATUS(MISSING));
    (void)cycle_at(&r, &h, 1, 20);
    assert_int_equal(readings_of(&h, holder)->of[0].status, STATUS(OK));
    struct snapshot_holder *next = hold(&r, "GPU-0", "llm-1");
    next->since_ns += NS_PER_S;
    node_wait(&r.node, 1);
    node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(readings_of(&h, next)->of[0].status, STATUS(MISSING)); /* its first sample failed */
    node_fail(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, SNAPSHOT_UNSUPPORTED);
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(readings_of(&h, next)->of[0].status, STATUS(UNSUPPORTED));
}

static void test_a_holder_that_has_its_device_alone_is_not_measured_by_process(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *holder = hold(&r, "GPU-0", "llm-0");
    use(&r, holder, 33, 1e9);
    publish_uses(&r);
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}));
    assert_false(h.last->holders[0]->is_measured);
    assert_double_same(readings_of(&h, holder)->of[0].mean, 50);
}

/* ---- readings of shared holders ---- */

static void test_a_shared_holder_has_what_its_processes_do_or_nothing(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *a = hold(&r, "GPU-0", "a"), *b = hold(&r, "GPU-0", "b");
    a->is_shared = b->is_shared = true;
    for (int i = 0; i < 100; i++) {
        node_wait(&r.node, 1);
        node_read(&r.node, "GPU-0", SNAPSHOT_UTILIZATION, 50);
        use(&r, a, i < 90 ? 20 : 30, 4e9);
        node_publish(&r.node);
        publish_uses(&r);
    }
    hub_watch(&r, &h,
              WANTS({"utilization", 20, 60}, {"memory_used", 0, 0}, {"temperature", 0, 0}, {"no_such_field", 0, 0}));
    assert_int_equal(h.last->n_holders, 2);
    assert_true(h.last->holders[0]->is_shared && h.last->holders[0]->is_measured);
    assert_true(h.last->holders[1]->is_shared && !h.last->holders[1]->is_measured);
    const struct hub_readings *own = readings_of(&h, a);
    assert_double_same(own->of[0].mean, 25);
    assert_double_same(own->of[0].peak, 30);
    assert_double_near(own->of[0].integral, 90 * 20 + 10 * 30, 1e-6);
    assert_double_same(own->of[0].valid_s, 100);
    assert_double_same(own->of[1].mean, 4e9);
    assert_int_equal(own->of[2].status, STATUS(UNSUPPORTED)); /* no process has a temperature */
    assert_int_equal(own->of[3].status, STATUS(MISSING));
    assert_false(has_own(&h, b)); /* nobody can tell what it does: not its device's, and no 0 */
}

static void test_a_shared_holder_that_is_measured_no_longer_has_no_readings(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *a = hold(&r, "GPU-0", "a");
    a->is_shared = true;
    use(&r, a, 20, -1);
    publish_uses(&r);
    hub_watch(&r, &h, WANTS({"utilization", 0, 0}, {"memory_used", 0, 0}));
    assert_true(has_own(&h, a));
    assert_int_equal(readings_of(&h, a)->of[0].status, STATUS(OK));
    assert_int_equal(readings_of(&h, a)->of[1].status, STATUS(NOT_YET));
    a->use = NULL;
    (void)hub_cycle(&r, &h, 1);
    assert_false(h.last->holders[0]->is_measured);
    assert_false(has_own(&h, a));
    use(&r, a, 20, -1);
    publish_uses(&r);
    (void)hub_cycle(&r, &h, 0);
    assert_true(has_own(&h, a));
    assert_double_same(readings_of(&h, a)->of[0].mean, 20);
    pods.list.uses = NULL; /* as a whole */
    a->use = NULL;
    (void)hub_cycle(&r, &h, 1);
    assert_false(has_own(&h, a));
}

static void test_a_reading_of_processes_that_fails_ages_and_is_missing(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_holder *a = hold(&r, "GPU-0", "a");
    a->is_shared = true;
    use(&r, a, 20, 1e9);
    publish_uses(&r);
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}, {"memory_used", 15, 60}));
    for (int i = 1; i <= 8; i++) {
        node_wait(&r.node, 1);
        use(&r, a, -1, 1e9);
        publish_uses(&r);
        (void)hub_cycle(&r, &h, 0);
        assert_int_equal(readings_of(&h, a)->of[0].status, i <= 5 ? STATUS(OK) : STATUS(MISSING));
        assert_int_equal(readings_of(&h, a)->of[1].status, STATUS(OK));
        if (i <= 5)
            assert_int_equal(h.at_ms - readings_of(&h, a)->of[0].taken_ms, 1000 * i);
    }
}

/* ---- minutes ---- */

static void remember(struct snapshot_minutes *m, int64_t minute, float low, float high)
{
    m->minute = minute;
    m->of[minute % SNAPSHOT_MINUTES] = (struct snapshot_extremes){low, high};
}

static void assert_minutes(const hub_holder *m, uint64_t minute, size_t n, const float (*want)[2])
{
    assert_true(m->minute == minute);
    assert_int_equal(m->n_memory_low, n);
    assert_int_equal(m->n_memory_high, n);
    for (size_t i = 0; i < n; i++) {
        assert_double_near((double)m->memory_low[i], (double)want[i][0], 1e-6);
        assert_double_near((double)m->memory_high[i], (double)want[i][1], 1e-6);
    }
}

static void test_minutes_come_whole_at_first_then_the_newest(void **state)
{
    (void)state;
    HUB h = {0}, other = {0};
    RIG_WITH(r, 50);
    pods_init(&r);
    struct snapshot_minutes *m = &pods.minutes[0];
    hold(&r, "GPU-0", "a")->memory = m;
    for (int i = 0; i < SNAPSHOT_MINUTES; i++)
        m->of[i] = (struct snapshot_extremes){.low = 1, .high = 0};
    hub_watch(&r, &h, WANTS({"utilization", 15, 60}));
    assert_int_equal(h.last->holders[0]->n_memory_low, 0);
    remember(m, 57, 10, 20);
    remember(m, 59, 30, 40); /* nothing was read in 58 */
    (void)hub_cycle(&r, &h, 1);
    assert_minutes(h.last->holders[0], 59, 3, (const float[][2]){{30, 40}, {1, 0}, {10, 20}});
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(h.last->n_holders, 0);
    remember(m, 59, 30, 45); /* it goes on */
    (void)hub_cycle(&r, &h, 1);
    assert_minutes(h.last->holders[0], 59, 1, (const float[][2]){{30, 45}});
    remember(m, 59, 30, 50);
    remember(m, 60, 50, 50); /* the next, and how the last one ended */
    (void)hub_cycle(&r, &h, 1);
    assert_minutes(h.last->holders[0], 60, 2, (const float[][2]){{50, 50}, {30, 50}});
    remember(m, 61, 50, 50); /* time alone moves on */
    (void)hub_cycle(&r, &h, 1);
    assert_minutes(h.last->holders[0], 61, 2, (const float[][2]){{50, 50}, {50, 50}});
    for (int i = 61; i < 61 + 40; i++)
        remember(m, i, (float)i, (float)i);
    (void)hub_cycle(&r, &h, 1);
    assert_int_equal(h.last->holders[0]->n_memory_low, SNAPSHOT_MINUTES);
    hub_watch(&r, &other, WANTS({"utilization", 15, 60}));
    assert_int_equal(other.last->holders[0]->n_memory_low, SNAPSHOT_MINUTES);
    assert_double_same((double)other.last->holders[0]->memory_low[0], 100);
    assert_double_same((double)other.last->holders[0]->memory_low[SNAPSHOT_MINUTES - 1], 71);
    hub_leave(&r, &other);
}

/* ---- sizes ---- */

static struct str four_wants(void)
{
    return WANTS({"utilization", 15, 60}, {"memory_used", 15, 60}, {"sm_activity", 15, 60}, {"power", 0, 0});
}

static void fill_node(struct rig *r, int gpus, int pods_each)
{
    static const enum snapshot_field fields[] = {SNAPSHOT_UTILIZATION, SNAPSHOT_MEMORY_USED, SNAPSHOT_SM_ACTIVITY,
                                                 SNAPSHOT_POWER};
    static char names[PODS_MAX][48];
    for (int i = 0; i < gpus; i++) {
        char uuid[48];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%08d-1234-1234-1234-123456789012", i);
        (void)node_add(&r->node, SNAPSHOT_GPU, i, uuid);
        for (size_t k = 0; k < ARRAY_LEN(fields); k++)
            node_read(&r->node, uuid, fields[k], i + (double)k / 3);
    }
    node_publish(&r->node);
    for (int i = 0; i < gpus * pods_each; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "a-deployment-of-a-model-0123456789-%04d", i);
        struct snapshot_holder *h = hold(r, r->node.latest->devices[i / pods_each].uuid, names[i]);
        h->is_shared = pods_each > 1;
        h->memory = &pods.minutes[0];
        use(r, h, i % 100, 1e9 + i);
    }
    publish_uses(r);
    for (int i = 0; i < SNAPSHOT_MINUTES; i++)
        remember(&pods.minutes[0], 100 + i, 10, 20);
}

static void test_a_usual_node_is_told_in_one_small_message(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    pods_init(&r);
    fill_node(&r, 8, 4);
    hub_watch(&r, &h, four_wants());
    assert_int_equal(h.n_updates, 1);
    assert_int_equal(h.holders.n, 32);
    assert_false(h.last->has_more);
    assert_true(h.bytes < 24 << 10);
}

static void test_a_large_node_is_told_in_one_message_too(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    pods_init(&r);
    fill_node(&r, 1000, 1);
    hub_watch(&r, &h, four_wants());
    TURN_UNTIL(&r, h.n_updates == 1 || h.is_done);
    assert_false(h.is_done);
    assert_int_equal(h.devices.n, 1000);
    assert_int_equal(h.holders.n, 1000);
    assert_false(h.last->has_more);
}

static void test_the_largest_node_is_told_in_parts_and_the_parts_say_so(void **state)
{
    (void)state;
    HUB h = {0};
    RIG_WITH(r);
    pods_init(&r);
    static struct hub_want wants[16];
    for (size_t i = 0; i < ARRAY_LEN(wants); i++)
        wants[i] = (struct hub_want){"utilization", (double)i, 60};
    fill_node(&r, 1024, 1);
    for (size_t i = 1024; i < 4096; i++) {
        struct snapshot_holder *holder = &pods.of[pods.list.n_holders++];
        *holder = pods.of[i % 1024];
        holder->id = (uint32_t)(1000000 + i);
    }
    hub_watch(&r, &h, packed_wants(wants, 10));
    TURN_UNTIL(&r, h.n_updates == 1 || h.is_done);
    assert_false(h.is_done);
    assert_true(h.last->is_full && h.last->has_more);
    assert_true(h.bytes > 3 << 20 && h.bytes < 4 << 20);
    for (int i = 0; i < 5 && h.last->has_more; i++)
        (void)hub_tick(&r, &h);
    assert_int_equal(h.devices.n, 1024);
    assert_int_equal(h.holders.n, 4096);
    assert_false(h.last->has_more);
    assert_true(h.n_updates > 1);
}

/* ---- any history ---- */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)((random_state >> 33) % n);
}

static struct str random_wants(void)
{
    return WANTS({"utilization", 5, 10}, {"utilization", 0, 0}, {"", 0, 0}, {"memory_used", 3, 20}, {"what", 0, 0});
}

/* Devices come, go, hang, fail and stand still; pods come and go, share and do not. */
static void random_step(struct rig *r)
{
    static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2"};
    static const char *const names[] = {"a", "b", "c", "d"};
    node_wait(&r->node, random_below(20) == 0 ? 7 : 1 + 0.01 * random_below(10));
    for (size_t i = 0; i < ARRAY_LEN(uuids); i++) {
        bool is_there = snapshot_store_find(r->node.store, uuids[i]) != NULL;
        unsigned what = random_below(30);
        if (!is_there && what < 10)
            (void)node_add(&r->node, SNAPSHOT_GPU, (int)i, uuids[i]);
        else if (is_there && what == 0)
            snapshot_store_remove(r->node.store, uuids[i]);
        else if (is_there && what < 4)
            node_fail(&r->node, uuids[i], SNAPSHOT_UTILIZATION, SNAPSHOT_FAILED);
        else if (is_there && what < 26)
            node_read(&r->node, uuids[i], SNAPSHOT_UTILIZATION, random_below(3) ? 50 : 10 * random_below(10));
        if (is_there && what > 0 && what % 2)
            node_read(&r->node, uuids[i], SNAPSHOT_MEMORY_USED, 1e9);
    }
    node_publish(&r->node);
    for (size_t i = pods.list.n_holders; i-- > 0;)
        if (random_below(25) == 0 || !snapshot_find_device(r->node.latest, pods.of[i].uuid))
            let_go(i);
    if (random_below(4) == 0 && pods.list.n_holders < 10) {
        const char *uuid = uuids[random_below(3)];
        if (snapshot_find_device(r->node.latest, uuid))
            hold(r, uuid, names[random_below(4)])->is_shared = random_below(2);
    }
    for (size_t i = 0; i < pods.list.n_holders; i++) {
        const struct snapshot_device *d = snapshot_find_device(r->node.latest, pods.of[i].uuid);
        if (d && d->id != pods.of[i].device_id)
            pods.of[i].device_id = d->id, pods.of[i].id += 100000, pods.of[i].since_ns = r->node.now_ns;
        if (random_below(3))
            use(r, &pods.of[i], random_below(4) ? 30 : random_below(100), -1);
    }
    publish_uses(r);
}

static void test_whatever_happens_a_hub_has_what_one_that_comes_now_is_told(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 12; run++) {
        HUB h = {0};
        RIG_WITH(r, 50);
        pods_init(&r);
        random_state = run;
        hub_watch(&r, &h, random_wants());
        for (int i = 0; i < 60; i++) {
            HUB other = {0};
            random_step(&r);
            (void)hub_tick(&r, &h);
            hub_watch(&r, &other, random_wants());
            assert_same_hub(&h, &other, 0.251);
            hub_leave(&r, &other);
        }
        hub_leave(&r, &h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_holder_is_told_with_all_that_is_known_of_it, pods_fini),
        cmocka_unit_test_teardown(test_holders_come_and_go_and_go_with_their_devices, pods_fini),
        cmocka_unit_test_teardown(test_a_young_holder_has_what_its_device_did_since_it_came, pods_fini),
        cmocka_unit_test_teardown(test_a_holder_is_young_for_as_long_as_windows_and_ages_reach, pods_fini),
        cmocka_unit_test_teardown(test_a_young_holder_of_a_device_that_fails_is_missing, pods_fini),
        cmocka_unit_test_teardown(test_a_holder_that_has_its_device_alone_is_not_measured_by_process, pods_fini),
        cmocka_unit_test_teardown(test_a_shared_holder_has_what_its_processes_do_or_nothing, pods_fini),
        cmocka_unit_test_teardown(test_a_shared_holder_that_is_measured_no_longer_has_no_readings, pods_fini),
        cmocka_unit_test_teardown(test_a_reading_of_processes_that_fails_ages_and_is_missing, pods_fini),
        cmocka_unit_test_teardown(test_minutes_come_whole_at_first_then_the_newest, pods_fini),
        cmocka_unit_test_teardown(test_a_usual_node_is_told_in_one_small_message, pods_fini),
        cmocka_unit_test_teardown(test_a_large_node_is_told_in_one_message_too, pods_fini),
        cmocka_unit_test_teardown(test_the_largest_node_is_told_in_parts_and_the_parts_say_so, pods_fini),
        cmocka_unit_test_teardown(test_whatever_happens_a_hub_has_what_one_that_comes_now_is_told, pods_fini),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
