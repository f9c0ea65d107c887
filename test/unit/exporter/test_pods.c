/* What pods do on devices: own values, the rest, and that both add up to the device; what is not measured is absent. */
#include "exporter/exporter.h"

#include "promtext/page.h"

#include <stdio.h>

#define NOW (100 * NS_PER_S)
#define GIB (1024.0 * 1024 * 1024)
enum { NOT_GIVEN = -1, HOLDERS_MAX = 64 };

/* A holder and what its own processes do; percent and GiB. */
struct holder {
    uint32_t device; /* place in the snapshot */
    const char *ns, *pod, *uid;
    bool is_listed, is_shared;
    double utilization, memory_gib;
    int age_s; /* of its readings */
};

struct device {
    enum snapshot_kind kind;
    int gpu_instance;
    double utilization, memory_gib;
    bool is_lost;
};

struct scene {
    const struct device *devices;
    size_t n_devices;
    const struct holder *holders;
    size_t n_holders;
    enum snapshot_sight sight;
    bool has_process_list, has_memory; /* the driver lists processes; with their memory */
    struct buf page;
};

static void record(struct snapshot_store *store, struct snapshot_device *d, enum snapshot_field field, double value,
                   int64_t at_ns)
{
    if (value >= 0)
        snapshot_store_record(store, d, field, value, at_ns);
}

static struct snapshot *make_snapshot(const struct scene *scene)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    snapshot_store_header(store)->driver = SNAPSHOT_DRIVER_OK;
    for (size_t i = 0; i < scene->n_devices; i++) {
        const struct device *row = &scene->devices[i];
        struct snapshot_device d = {
            .kind = row->kind, .index = (int)i, .minor = -1, .gpu_instance = row->gpu_instance, .compute_instance = 0};
        (void)snprintf(d.uuid, sizeof(d.uuid), "%s-%zu", row->kind == SNAPSHOT_MIG ? "MIG" : "GPU", i);
        struct snapshot_device *place = snapshot_store_add(store, &d);
        record(store, place, SNAPSHOT_UTILIZATION, row->utilization, NOW);
        record(store, place, SNAPSHOT_MEMORY_USED, row->memory_gib * GIB, NOW);
        place->is_lost = row->is_lost;
        if (scene->has_process_list) {
            place->process_list.status = place->process_utilization.status = SNAPSHOT_OK;
            place->process_list.taken_ns = place->process_utilization.taken_ns = NOW;
        }
    }
    struct snapshot *s = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    return s;
}

/* Uses in an order of their own: pods do not come in the order of devices. */
static struct snapshot *make_uses(const struct scene *scene)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    for (size_t i = 0; i < scene->n_holders; i++) {
        const struct holder *h = &scene->holders[i];
        struct snapshot_device d = {.gpu_instance = -1, .compute_instance = -1};
        (void)snprintf(d.uuid, sizeof(d.uuid), "use-%zu", i);
        struct snapshot_device *place = snapshot_store_add(store, &d);
        record(store, place, SNAPSHOT_UTILIZATION, h->utilization, NOW - h->age_s * NS_PER_S);
        record(store, place, SNAPSHOT_MEMORY_USED, h->memory_gib * GIB, NOW - h->age_s * NS_PER_S);
    }
    struct snapshot *uses = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    return uses;
}

static void render_at(struct scene *scene, int64_t now_ns)
{
    struct snapshot *s = make_snapshot(scene), *uses = make_uses(scene);
    struct snapshot_holder holders[HOLDERS_MAX] = {{.id = 0}};
    struct snapshot_process process = {.device_id = s->devices[0].id, .pid = 7, .has_memory = scene->has_memory};
    for (size_t i = 0; i < scene->n_holders; i++) {
        const struct holder *h = &scene->holders[i];
        bool has_use = h->utilization >= 0 || h->memory_gib >= 0;
        holders[i] = (struct snapshot_holder){.id = (uint32_t)i + 1,
                                              .device_id = h->device < s->n_devices ? s->devices[h->device].id : 999,
                                              .uuid = "",
                                              .ns = h->ns,
                                              .pod = h->pod,
                                              .pod_uid = h->uid,
                                              .is_listed = h->is_listed,
                                              .is_shared = h->is_shared,
                                              .use = has_use ? &uses->devices[i] : NULL};
    }
    struct snapshot copy = *s;
    copy.processes = &process;
    copy.n_processes = scene->has_process_list;
    struct snapshot_holders list = {.taken_ns = NOW,
                                    .sight = scene->sight,
                                    .uses = uses,
                                    .n_unattributed = 3,
                                    .holders = holders,
                                    .n_holders = scene->n_holders};
    struct metrics *metrics = metrics_new();
    struct exporter *x =
        exporter_new(&(struct exporter_config){.metrics = metrics, .node_name = "n", .version = "1", .has_dcgm = true});
    for (int format = 0; format < 2; format++) {
        buf_init(&scene->page, 1 << 20);
        exporter_render(x, &(struct exporter_view){.snapshot = &copy, .holders = &list, .now_ns = now_ns},
                        (enum promtext_format)format, &scene->page);
        (void)page_check((struct str){scene->page.data, scene->page.len}, (enum promtext_format)format);
        if (format == 0)
            buf_fini(&scene->page);
    }
    exporter_free(x);
    metrics_free(metrics);
    snapshot_unref(s);
    snapshot_unref(uses);
}

static void render(struct scene *scene)
{
    render_at(scene, NOW + NS_PER_S);
}

/* The series that begin so: how many, and their sum. */
static size_t sum_of(struct scene *scene, const char *series, double *ret_sum)
{
    size_t n = 0;
    *ret_sum = 0;
    struct str rest = {scene->page.data, scene->page.len};
    while (rest.ptr) {
        struct str line = str_cut(&rest, '\n');
        double value;
        const char *space = line.len ? memrchr(line.ptr, ' ', line.len) : NULL;
        if (!space || !str_has_prefix(line, series))
            continue;
        assert_int_equal(num_parse_double((struct str){space + 1, line.len - (size_t)(space + 1 - line.ptr)}, &value),
                         0);
        *ret_sum += value;
        n++;
    }
    return n;
}

static void assert_series(struct scene *scene, const char *series, double want)
{
    double sum;
    assert_int_equal(sum_of(scene, series, &sum), 1);
    assert_double_near(sum, want, 1e-9);
}

static void assert_absent(struct scene *scene, const char *series)
{
    double sum;
    if (sum_of(scene, series, &sum))
        fail_msg("%s ought to be absent:\n%s", series, buf_cstr(&scene->page));
}

#define UTILIZATION      "keda_gpu_scaler_pod_gpu_utilization_ratio"
#define MEMORY           "keda_gpu_scaler_pod_gpu_memory_used_bytes"
#define REST_UTILIZATION "keda_gpu_scaler_gpu_unattributed_utilization_ratio"
#define REST_MEMORY      "keda_gpu_scaler_gpu_unattributed_memory_bytes"
#define GPU_0            "{gpu=\"0\",uuid=\"GPU-0\""

static const struct device one_gpu[] = {{SNAPSHOT_GPU, -1, 90, 60, false}};

static void test_pods_and_the_rest_of_a_shared_gpu_add_up_to_it(void **state)
{
    (void)state;
    static const struct holder holders[] = {{0, "", "", "", false, true, 5, 1, 0},
                                            {0, "ml", "a", "u-a", true, true, 40, 20, 0},
                                            {0, "ml", "b", "u-b", true, true, 30.5, 30, 0},
                                            {0, "ml", "c", "u-c", true, true, 0, 0, 0}};
    struct scene scene = {one_gpu, 1, holders, 4, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    render(&scene);
    assert_series(&scene, UTILIZATION GPU_0 ",pod_namespace=\"ml\",pod_name=\"a\",pod_uid=\"u-a\"} ", 0.4);
    assert_series(&scene, UTILIZATION GPU_0 ",pod_namespace=\"ml\",pod_name=\"b\",pod_uid=\"u-b\"} ", 0.305);
    assert_series(&scene, UTILIZATION GPU_0 ",pod_namespace=\"ml\",pod_name=\"c\",pod_uid=\"u-c\"} ", 0);
    assert_series(&scene, UTILIZATION GPU_0 "} ", 0.05); /* of no pod */
    assert_series(&scene, REST_UTILIZATION GPU_0 "} ", 0.145);
    assert_series(&scene, MEMORY GPU_0 ",pod_namespace=\"ml\",pod_name=\"b\",pod_uid=\"u-b\"} ", 30 * GIB);
    assert_series(&scene, REST_MEMORY GPU_0 "} ", 9 * GIB);
    double pods, rest;
    assert_int_equal(sum_of(&scene, MEMORY "{", &pods), 4);
    assert_int_equal(sum_of(&scene, REST_MEMORY "{", &rest), 1);
    assert_double_same(pods + rest, 60 * GIB);
    assert_series(&scene, "keda_gpu_scaler_process_sight{state=\"ok\"} ", 1);
    assert_series(&scene, "keda_gpu_scaler_processes_unattributed ", 3);
    buf_fini(&scene.page);
}

static void test_pods_whose_readings_are_ahead_leave_no_rest_below_zero(void **state)
{
    (void)state;
    static const struct holder holders[] = {{0, "ml", "a", "u", true, false, 97, 61, 0}};
    struct scene scene = {one_gpu, 1, holders, 1, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    render(&scene);
    assert_series(&scene, UTILIZATION "{", 0.97);
    assert_series(&scene, REST_UTILIZATION "{", 0);
    assert_series(&scene, REST_MEMORY "{", 0);
    buf_fini(&scene.page);
}

/* dcgm-exporter #587 and the like: what cannot be told apart is not split, and one of several is not given all of it.
 */
static void test_without_processes_only_a_pod_alone_has_what_the_device_does(void **state)
{
    (void)state;
    static const struct {
        struct holder holders[2];
        size_t n;
        bool is_there;
    } rows[] = {
        {{{0, "ml", "a", "u", true, false, NOT_GIVEN, NOT_GIVEN, 0}}, 1, true},
        {{{0, "ml", "a", "u", true, true, NOT_GIVEN, NOT_GIVEN, 0}}, 1, false},   /* a replica: others may be there */
        {{{0, "ml", "a", "u", false, false, NOT_GIVEN, NOT_GIVEN, 0}}, 1, false}, /* seen by its processes only */
        {{{0, "", "", "", false, false, NOT_GIVEN, NOT_GIVEN, 0},
          {0, "ml", "a", "u", true, false, NOT_GIVEN, NOT_GIVEN, 0}},
         2,
         false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct scene scene = {one_gpu, 1,     rows[i].holders,   rows[i].n, SNAPSHOT_SIGHT_NO_HOST_PIDS,
                              false,   false, {NULL, 0, 0, 0, 0}};
        render(&scene);
        double sum;
        assert_int_equal(sum_of(&scene, UTILIZATION "{", &sum), rows[i].is_there);
        assert_double_near(sum, rows[i].is_there ? 0.9 : 0, 1e-9);
        assert_int_equal(sum_of(&scene, MEMORY "{", &sum), rows[i].is_there);
        assert_absent(&scene, REST_UTILIZATION);
        assert_absent(&scene, REST_MEMORY);
        assert_series(&scene, "keda_gpu_scaler_process_sight{state=\"no_host_pids\"} ", 1);
        assert_absent(&scene, "keda_gpu_scaler_processes_unattributed");
        buf_fini(&scene.page);
    }
}

static void test_where_the_driver_gives_memory_only_nothing_is_said_of_utilization(void **state)
{
    (void)state;
    static const struct holder holders[] = {{0, "ml", "a", "u-a", true, true, NOT_GIVEN, 20, 0},
                                            {0, "ml", "b", "u-b", true, true, NOT_GIVEN, 30, 0}};
    struct scene scene = {one_gpu, 1, holders, 2, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    double sum;
    render(&scene);
    assert_absent(&scene, UTILIZATION);
    assert_absent(&scene, REST_UTILIZATION);
    assert_int_equal(sum_of(&scene, MEMORY "{", &sum), 2);
    assert_series(&scene, REST_MEMORY "{", 10 * GIB);
    buf_fini(&scene.page);
}

static void test_old_readings_of_a_pod_are_absent_and_no_guess_takes_their_place(void **state)
{
    (void)state;
    static const struct holder holders[] = {{0, "ml", "a", "u-a", true, false, 40, 20, 30}};
    struct scene scene = {one_gpu, 1, holders, 1, SNAPSHOT_SIGHT_OK, false, false, {NULL, 0, 0, 0, 0}};
    render(&scene);
    assert_absent(&scene, UTILIZATION);
    assert_absent(&scene, MEMORY);
    assert_absent(&scene, REST_MEMORY);
    buf_fini(&scene.page);
    static const struct holder fresh[] = {{0, "ml", "a", "u-a", true, false, 40, 20, 0}};
    scene.holders = fresh;
    render_at(&scene, NOW + 10 * NS_PER_S); /* the driver hangs */
    assert_absent(&scene, UTILIZATION);
    assert_absent(&scene, MEMORY);
    buf_fini(&scene.page);
}

static void test_a_free_gpu_is_all_rest_where_its_processes_are_told(void **state)
{
    (void)state;
    static const struct {
        enum snapshot_sight sight;
        bool has_process_list, has_memory, is_there;
    } rows[] = {{SNAPSHOT_SIGHT_OK, true, true, true},
                {SNAPSHOT_SIGHT_OK, true, false, false}, /* a process whose memory the driver does not tell */
                {SNAPSHOT_SIGHT_OK, false, true, false},
                {SNAPSHOT_SIGHT_OFF, true, true, false},
                {SNAPSHOT_SIGHT_NOT_GIVEN, true, true, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct scene scene = {
            one_gpu, 1, NULL, 0, rows[i].sight, rows[i].has_process_list, rows[i].has_memory, {NULL, 0, 0, 0, 0}};
        double sum;
        render(&scene);
        assert_int_equal(sum_of(&scene, REST_MEMORY "{", &sum), rows[i].is_there);
        assert_absent(&scene, MEMORY);
        buf_fini(&scene.page);
    }
}

static void test_a_lost_gpu_has_no_pods_values(void **state)
{
    (void)state;
    static const struct device lost[] = {{SNAPSHOT_GPU, -1, 90, 60, true}};
    static const struct holder holders[] = {{0, "ml", "a", "u-a", true, false, 40, 20, 0}};
    struct scene scene = {lost, 1, holders, 1, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    render(&scene);
    assert_absent(&scene, UTILIZATION);
    assert_absent(&scene, REST_MEMORY);
    buf_fini(&scene.page);
}

/* A page with a series twice is refused as a whole. */
static void test_pods_that_read_alike_are_one_series(void **state)
{
    (void)state;
    static const struct holder holders[] = {{0, "ml", "a", "", true, true, 10, 1, 0},
                                            {0, "ml", "a", "u", true, true, 20, 2, 0},
                                            {0, "ml", "a", "", false, true, 30, 4, 0}};
    struct scene scene = {one_gpu, 1, holders, 3, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    render(&scene);
    assert_series(&scene, UTILIZATION GPU_0 ",pod_namespace=\"ml\",pod_name=\"a\"} ", 0.4);
    assert_series(&scene, UTILIZATION GPU_0 ",pod_namespace=\"ml\",pod_name=\"a\",pod_uid=\"u\"} ", 0.2);
    assert_series(&scene, REST_MEMORY "{", 53 * GIB);
    buf_fini(&scene.page);
}

static void test_holders_are_found_whatever_the_order_and_unknown_devices_are_left_out(void **state)
{
    (void)state;
    static const struct device gpus[] = {{SNAPSHOT_GPU, -1, 10, 1, false}, {SNAPSHOT_GPU, -1, 20, 2, false}};
    static const struct holder holders[] = {{77, "ml", "gone", "u", true, false, 99, 9, 0},
                                            {1, "ml", "b", "u", true, false, 20, 2, 0},
                                            {0, "ml", "a", "u", true, false, 10, 1, 0}};
    struct scene scene = {gpus, 2, holders, 3, SNAPSHOT_SIGHT_OK, true, true, {NULL, 0, 0, 0, 0}};
    double sum;
    render(&scene);
    assert_int_equal(sum_of(&scene, UTILIZATION "{", &sum), 2);
    assert_series(&scene, MEMORY "{gpu=\"1\",uuid=\"GPU-1\",pod_namespace=\"ml\",pod_name=\"b\"", 2 * GIB);
    buf_fini(&scene.page);
}

/* The memory of a GPU instance is that of all its compute instances: nobody's alone, and no sum of theirs. */
static void test_compute_instances_have_no_memory_of_their_own_unless_it_is_measured(void **state)
{
    (void)state;
    static const struct device cut[] = {{SNAPSHOT_MIG, 1, NOT_GIVEN, 8, false},
                                        {SNAPSHOT_MIG, 1, NOT_GIVEN, 8, false},
                                        {SNAPSHOT_MIG, 2, NOT_GIVEN, 5, false}};
    static const struct holder holders[] = {{0, "ml", "a", "u", true, false, NOT_GIVEN, NOT_GIVEN, 0},
                                            {1, "ml", "b", "u", true, false, NOT_GIVEN, 3, 0},
                                            {2, "ml", "c", "u", true, false, NOT_GIVEN, NOT_GIVEN, 0}};
    struct scene scene = {cut, 3, holders, 3, SNAPSHOT_SIGHT_OK, true, false, {NULL, 0, 0, 0, 0}};
    double sum;
    render(&scene);
    assert_int_equal(sum_of(&scene, MEMORY "{", &sum), 2);
    assert_double_same(sum, 8 * GIB);
    assert_absent(&scene, REST_MEMORY);
    buf_fini(&scene.page);
}

/* 0 to n - 1, the same in every run. */
static uint32_t pick(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 16) % n;
}

static int compare_holders(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return strcmp(x->ns, y->ns) ? strcmp(x->ns, y->ns) : strcmp(x->pod, y->pod);
}

/* Any mixture of what is known: a device that has a rest equals its pods and it, unless the pods are ahead. */
static void test_whatever_is_known_pods_and_rest_are_the_device(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c\"\n", "\xff"};
    uint32_t seed = 3;
    for (int round = 0; round < 300; round++) {
        struct device gpu = {SNAPSHOT_GPU, -1, pick(&seed, 101), pick(&seed, 80), false};
        struct holder holders[6];
        size_t n = pick(&seed, 7);
        for (size_t i = 0; i < n; i++)
            holders[i] = (struct holder){pick(&seed, 8) == 0,
                                         pick(&seed, 5) ? "ml" : "",
                                         names[pick(&seed, 4)],
                                         names[pick(&seed, 4)],
                                         pick(&seed, 2),
                                         pick(&seed, 2),
                                         pick(&seed, 3) ? pick(&seed, 30) : (double)NOT_GIVEN,
                                         pick(&seed, 3) ? pick(&seed, 20) : (double)NOT_GIVEN,
                                         pick(&seed, 4) ? 0 : 30};
        qsort(holders, n, sizeof(holders[0]), compare_holders);
        struct scene scene = {&gpu,
                              1,
                              holders,
                              n,
                              (enum snapshot_sight)pick(&seed, 5),
                              pick(&seed, 2),
                              pick(&seed, 2),
                              {NULL, 0, 0, 0, 0}};
        double pods, rest;
        render(&scene);
        (void)sum_of(&scene, MEMORY "{", &pods);
        if (sum_of(&scene, REST_MEMORY "{", &rest))
            assert_double_near(pods + rest, fmax(pods, gpu.memory_gib * GIB), 1);
        (void)sum_of(&scene, UTILIZATION "{", &pods);
        if (sum_of(&scene, REST_UTILIZATION "{", &rest))
            assert_double_near(pods + rest, fmax(pods, gpu.utilization / 100), 1e-9);
        buf_fini(&scene.page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_and_the_rest_of_a_shared_gpu_add_up_to_it),
        cmocka_unit_test(test_pods_whose_readings_are_ahead_leave_no_rest_below_zero),
        cmocka_unit_test(test_without_processes_only_a_pod_alone_has_what_the_device_does),
        cmocka_unit_test(test_where_the_driver_gives_memory_only_nothing_is_said_of_utilization),
        cmocka_unit_test(test_old_readings_of_a_pod_are_absent_and_no_guess_takes_their_place),
        cmocka_unit_test(test_a_free_gpu_is_all_rest_where_its_processes_are_told),
        cmocka_unit_test(test_a_lost_gpu_has_no_pods_values),
        cmocka_unit_test(test_pods_that_read_alike_are_one_series),
        cmocka_unit_test(test_holders_are_found_whatever_the_order_and_unknown_devices_are_left_out),
        cmocka_unit_test(test_compute_instances_have_no_memory_of_their_own_unless_it_is_measured),
        cmocka_unit_test(test_whatever_is_known_pods_and_rest_are_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
