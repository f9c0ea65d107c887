/* Owners: copied whole, in order by device, found by UUID, freed with the last reference. */
#include "snapshot/snapshot.h"

#include "support.h"

#include <string.h>

static struct snapshot_holding holding(const char *uuid, const char *pod)
{
    return (struct snapshot_holding){.uuid = uuid,
                                     .device_id = uuid,
                                     .ns = "ml",
                                     .pod = pod,
                                     .container = "main",
                                     .resource = "nvidia.com/gpu",
                                     .claim_ns = "",
                                     .claim = "",
                                     .is_matched = true,
                                     .replica = -1,
                                     .shares = 1};
}

static void test_holdings_of_a_device_are_found_in_a_row(void **state)
{
    (void)state;
    struct snapshot_holding given[] = {holding("GPU-b", "two"), holding("GPU-c", "x"), holding("GPU-a", "y"),
                                       holding("GPU-b", "one"), holding("", "lost")};
    struct snapshot_owners *owners = snapshot_owners_new(
        &(struct snapshot_owners){.state = SNAPSHOT_OWNERS_OK, .holdings = given, .n_holdings = ARRAY_LEN(given)});
    size_t n;
    const struct snapshot_holding *found = snapshot_owners_of(owners, "GPU-b", &n);
    assert_int_equal(n, 2);
    assert_string_equal(found[0].pod, "one");
    assert_string_equal(found[1].pod, "two");
    found = snapshot_owners_of(owners, "GPU-c", &n);
    assert_int_equal(n, 1);
    assert_string_equal(found[0].pod, "x");
    assert_null(snapshot_owners_of(owners, "GPU-bb", &n));
    assert_int_equal(n, 0);
    assert_null(snapshot_owners_of(owners, "", &n)); /* a device without UUID is nobody's */
    snapshot_owners_unref(owners);
}

static void test_owners_outlive_what_they_were_made_from(void **state)
{
    (void)state;
    char pod[] = "trainer";
    struct snapshot_holding given[] = {holding("GPU-a", pod)};
    struct snapshot_owners *owners =
        snapshot_owners_new(&(struct snapshot_owners){.text = "old", .holdings = given, .n_holdings = 1});
    memset(pod, 'x', sizeof(pod) - 1);
    given[0].ns = "other";
    struct snapshot_owners *second = snapshot_owners_ref(owners);
    snapshot_owners_unref(owners);
    assert_string_equal(second->holdings[0].pod, "trainer");
    assert_string_equal(second->holdings[0].ns, "ml");
    assert_string_equal(second->text, "old");
    snapshot_owners_unref(second);
}

static void test_no_owners_have_no_holdings(void **state)
{
    (void)state;
    size_t n = 7;
    assert_null(snapshot_owners_of(NULL, "GPU-a", &n));
    assert_int_equal(n, 0);
    struct snapshot_owners *owners = snapshot_owners_new(&(struct snapshot_owners){.state = SNAPSHOT_OWNERS_OK});
    assert_null(snapshot_owners_of(owners, "GPU-a", &n));
    assert_int_equal(n, 0);
    snapshot_owners_unref(owners);
    snapshot_owners_unref(NULL);
}

static void test_each_state_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(snapshot_owners_state_name(SNAPSHOT_OWNERS_STARTING), "starting");
    assert_string_equal(snapshot_owners_state_name(SNAPSHOT_OWNERS_FAILED), "failed");
    assert_string_equal(snapshot_owners_state_name((enum snapshot_owners_state)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holdings_of_a_device_are_found_in_a_row),
        cmocka_unit_test(test_owners_outlive_what_they_were_made_from),
        cmocka_unit_test(test_no_owners_have_no_holdings),
        cmocka_unit_test(test_each_state_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
