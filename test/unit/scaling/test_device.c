/* scaling 2.2: from the devices of a pod to its value. */
#include "scaling/scaling.h"

#include "pods.h"

static void test_own_share_is_of_what_the_pod_could_fairly_have(void **state)
{
    (void)state;
    static const struct {
        double share, device, share_sum;
        unsigned sharers;
        double want;
    } cases[] = {
        {40, 40, 40, 1, 40},          /* alone: D */
        {100, 100, 100, 1, 100},      /* alone on a full one */
        {25, 100, 100, 4, 100},       /* four that fight for one full GPU are at 100 each, not at 25 */
        {8, 100, 100, 2, 16},         /* 8 % beside a tenant that takes the rest */
        {0, 100, 100, 3, 0},          /* idle beside others */
        {0, 0, 0, 0, 0},              /* nobody does anything: no division by zero */
        {20, 60, 60, 2, 100.0 / 3},   /* 20 of 20 + 40 free; fair is 50: max(60, 50) */
        {10, 90, 90, 2, 20},          /* free 10: 10 of 20, but a half is fair: 10 / 50 */
        {60, 50, 90, 2, 6000.0 / 70}, /* D is at least the sum of the shares */
        {70, 100, 140, 2, 100},       /* the sum of noisy shares counts at most 100 */
        {30, 20, 30, 1, 30},          /* D below the pod's own share: the share */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_double_near(scaling_fair_share(cases[i].share, cases[i].device, cases[i].share_sum, cases[i].sharers),
                           cases[i].want, 1e-9);
}

static void test_own_share_never_leaves_0_to_100_and_grows_with_the_pods_work(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 8; n++)
        for (int others = 0; others <= 100; others += 5) {
            double before = -1;
            for (int own = 0; own + others <= 100; own += 5) {
                double p = scaling_fair_share(own, own + others, own + others, n);
                assert_true(p >= 0 && p <= 100 && p >= before);
                before = p;
            }
        }
}

static void test_memory_share_is_of_own_and_free(void **state)
{
    (void)state;
    assert_known_same(scaling_memory_share(30, 30), KNOWN(50));
    assert_known_same(scaling_memory_share(0, 10), KNOWN(0));
    assert_known_same(scaling_memory_share(10, 0), KNOWN(100));
    assert_known_same(scaling_memory_share(0, 0), UNKNOWN);
}

#define DEVICE(v)                                                                                                      \
    {                                                                                                                  \
        .reading = SCALING_READ_OK, .value = (v), .holders = 1, .own_holders = 1                                       \
    }
#define MISSING_DEVICE                                                                                                 \
    {                                                                                                                  \
        .reading = SCALING_READ_MISSING                                                                                \
    }
#define UNSUPPORTED                                                                                                    \
    {                                                                                                                  \
        .reading = SCALING_READ_UNSUPPORTED                                                                            \
    }
/* device, holders, own holders, share, sum, sharers */
#define SHARED(v, h, o, s, sum, n)                                                                                     \
    {                                                                                                                  \
        .reading = SCALING_READ_OK, .value = (v), .holders = (h), .own_holders = (o), .has_shares = true,              \
        .share = (s), .share_sum = (sum), .sharers = (n)                                                               \
    }
#define UNTOLD(v, h, o)                                                                                                \
    {                                                                                                                  \
        .reading = SCALING_READ_OK, .value = (v), .holders = (h), .own_holders = (o)                                   \
    }
#define DEVICES(...) {__VA_ARGS__}, .n = sizeof((struct scaling_device[]){__VA_ARGS__}) / sizeof(struct scaling_device)

static const struct {
    const char *what;
    enum scaling_kind kind;
    struct scaling_device devices[4];
    size_t n;
    enum scaling_reading want;
    double value; /* or the bound where UNSHARED */
    size_t n_unsupported;
} combined[] = {
    {"ratios: the mean", SCALING_KIND_UTILIZATION, DEVICES(DEVICE(60), DEVICE(100)), SCALING_READ_OK, 80, 0},
    {"temperature: the maximum", SCALING_KIND_TEMPERATURE, DEVICES(DEVICE(60), DEVICE(71)), SCALING_READ_OK, 71, 0},
    {"additive: the sum", SCALING_KIND_ADDITIVE, DEVICES(DEVICE(300), DEVICE(250)), SCALING_READ_OK, 550, 0},
    {"MiB: the sum", SCALING_KIND_MEMORY_SIZE, DEVICES(DEVICE(1000), DEVICE(24)), SCALING_READ_OK, 1024, 0},
    {"memory alone on its GPU", SCALING_KIND_MEMORY_PERCENT, DEVICES(DEVICE(55)), SCALING_READ_OK, 55, 0},
    {"one device of two is missing: the pod is", SCALING_KIND_UTILIZATION, DEVICES(DEVICE(60), MISSING_DEVICE),
     SCALING_READ_MISSING, 0, 0},
    {"an unsupported device is left out", SCALING_KIND_UTILIZATION, DEVICES(DEVICE(60), UNSUPPORTED), SCALING_READ_OK,
     60, 1},
    {"all unsupported", SCALING_KIND_UTILIZATION, DEVICES(UNSUPPORTED, UNSUPPORTED), SCALING_READ_UNSUPPORTED, 0, 2},
    {"missing and unsupported: missing", SCALING_KIND_UTILIZATION, DEVICES(MISSING_DEVICE, UNSUPPORTED),
     SCALING_READ_MISSING, 0, 1},
    {"own share", SCALING_KIND_UTILIZATION, DEVICES(SHARED(100, 4, 1, 25, 100, 4)), SCALING_READ_OK, 100, 0},
    {"own share of one, all of the other", SCALING_KIND_UTILIZATION, DEVICES(SHARED(100, 2, 1, 8, 100, 2), DEVICE(84)),
     SCALING_READ_OK, 50, 0},
    {"no shares, all holders are ours: split evenly", SCALING_KIND_UTILIZATION, DEVICES(UNTOLD(100, 4, 4)),
     SCALING_READ_OK, 100, 0},
    {"split evenly, half idle: 10 of 10 + 60", SCALING_KIND_UTILIZATION, DEVICES(UNTOLD(40, 4, 4)), SCALING_READ_OK,
     1000.0 / 70, 0},
    {"no shares, another tenant: bound D", SCALING_KIND_UTILIZATION, DEVICES(UNTOLD(90, 2, 1)), SCALING_READ_UNSHARED,
     90, 0},
    {"the bound of two devices is their mean", SCALING_KIND_UTILIZATION, DEVICES(UNTOLD(90, 2, 1), DEVICE(30)),
     SCALING_READ_UNSHARED, 60, 0},
    {"unshared and missing: missing", SCALING_KIND_UTILIZATION, DEVICES(UNTOLD(90, 2, 1), MISSING_DEVICE),
     SCALING_READ_MISSING, 0, 0},
    {"watts of a shared GPU, all ours: split", SCALING_KIND_ADDITIVE, DEVICES(UNTOLD(300, 3, 3)), SCALING_READ_OK, 100,
     0},
    {"watts beside another tenant: bound", SCALING_KIND_ADDITIVE, DEVICES(UNTOLD(300, 3, 2)), SCALING_READ_UNSHARED,
     300, 0},
    {"temperature is everybody's", SCALING_KIND_TEMPERATURE, DEVICES(UNTOLD(70, 3, 1)), SCALING_READ_OK, 70, 0},
    {"no device", SCALING_KIND_UTILIZATION, {DEVICE(1)}, 0, SCALING_READ_MISSING, 0, 0},
};

static void test_devices_make_one_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(combined); i++) {
        struct scaling_pod_value got;
        scaling_combine_devices(combined[i].kind, combined[i].devices, combined[i].n, &got);
        if (got.reading != combined[i].want || got.n_unsupported != combined[i].n_unsupported)
            fail_msg("%s: %s, %zu unsupported", combined[i].what, scaling_reading_name(got.reading), got.n_unsupported);
        double number = got.reading == SCALING_READ_UNSHARED ? got.bound : got.value;
        if (fabs(number - combined[i].value) > 1e-9)
            fail_msg("%s: %g", combined[i].what, number);
    }
}

static void test_shared_memory_is_own_of_own_and_free(void **state)
{
    (void)state;
    struct scaling_device percent = SHARED(70, 2, 1, 20, 70, 2), size = SHARED(70000, 2, 1, 20000, 70000, 2);
    percent.free = 30;
    size.free = 30000;
    struct scaling_pod_value got;
    scaling_combine_devices(SCALING_KIND_MEMORY_PERCENT, &percent, 1, &got);
    assert_int_equal(got.reading, SCALING_READ_OK);
    assert_double_near(got.value, 40, 1e-9); /* 20 / (20 + 30) */
    scaling_combine_devices(SCALING_KIND_MEMORY_SIZE, &size, 1, &got);
    assert_double_near(got.value, 20000, 1e-9);

    percent.share = percent.free = 0; /* another tenant has it all and this pod nothing */
    scaling_combine_devices(SCALING_KIND_MEMORY_PERCENT, &percent, 1, &got);
    assert_int_equal(got.reading, SCALING_READ_MISSING);

    struct scaling_device even = UNTOLD(60, 3, 3);
    even.free = 40;
    scaling_combine_devices(SCALING_KIND_MEMORY_PERCENT, &even, 1, &got);
    assert_double_near(got.value, 100 * 20.0 / 60, 1e-9);
}

static void test_only_ratios_have_a_ceiling(void **state)
{
    (void)state;
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_UTILIZATION), 100);
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_RATIO), 100);
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_MEMORY_PERCENT), 100);
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_MEMORY_SIZE), 0);
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_ADDITIVE), 0);
    assert_double_same(scaling_kind_ceiling(SCALING_KIND_TEMPERATURE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_share_is_of_what_the_pod_could_fairly_have),
        cmocka_unit_test(test_own_share_never_leaves_0_to_100_and_grows_with_the_pods_work),
        cmocka_unit_test(test_memory_share_is_of_own_and_free),
        cmocka_unit_test(test_devices_make_one_value),
        cmocka_unit_test(test_shared_memory_is_own_of_own_and_free),
        cmocka_unit_test(test_only_ratios_have_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
