/* The map: lookup, replacement, the ceiling and its order of last use. */
#include "base/base.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

/* Values are numbers on the heap; the test counts how many of them live. */
static int n_live;

static int *number(int value)
{
    int *n = mem_new(int);
    *n = value;
    n_live++;
    return n;
}

static void free_number(void *value)
{
    n_live--;
    free(value);
}

static struct map *new_map(size_t max_entries)
{
    n_live = 0;
    return map_new(max_entries, free_number);
}

static void put(struct map *m, const char *key, int value)
{
    map_put(m, key, strlen(key), number(value));
}

/* The number under the key, or -1. */
static int get(struct map *m, const char *key)
{
    const int *n = (const int *)map_get(m, key, strlen(key));
    return n ? *n : -1;
}

static void append_key(void *context, const void *key, size_t key_len, void *value)
{
    (void)value;
    (void)buf_append((struct buf *)context, key, key_len);
}

static void assert_order(const struct map *m, const char *want)
{
    BUF_AUTO struct buf order;
    buf_init(&order, 1000);
    map_each(m, append_key, &order);
    assert_string_equal(buf_cstr(&order), want);
}

static void test_what_was_put_is_found_until_it_is_removed(void **state)
{
    (void)state;
    struct map *m = new_map(10);
    assert_int_equal(get(m, "a"), -1);
    put(m, "a", 1);
    put(m, "b", 2);
    assert_int_equal(get(m, "a"), 1);
    assert_int_equal(get(m, "b"), 2);
    assert_int_equal(map_len(m), 2);
    map_remove(m, "a", 1);
    map_remove(m, "nothing", 7);
    assert_int_equal(get(m, "a"), -1);
    assert_int_equal(map_len(m), 1);
    assert_int_equal(n_live, 1);
    map_free(m);
    assert_int_equal(n_live, 0);
}

static void test_replacing_frees_the_old_value(void **state)
{
    (void)state;
    struct map *m = new_map(2);
    put(m, "a", 1);
    put(m, "b", 2);
    put(m, "a", 3);
    assert_int_equal(map_len(m), 2);
    assert_int_equal(n_live, 2);
    assert_int_equal(get(m, "a"), 3);
    assert_int_equal(get(m, "b"), 2);
    map_free(m);
}

static void test_keys_are_bytes_of_any_length(void **state)
{
    (void)state;
    struct map *m = new_map(10);
    map_put(m, NULL, 0, number(0));
    map_put(m, "\0", 1, number(1));
    map_put(m, "\0\0", 2, number(2));
    assert_int_equal(map_len(m), 3);
    assert_int_equal(*(int *)map_get(m, "", 0), 0);
    assert_int_equal(*(int *)map_get(m, "\0", 1), 1);
    assert_int_equal(*(int *)map_get(m, "\0\0", 2), 2);
    map_free(m);
}

static void test_full_map_drops_what_was_not_used_for_longest(void **state)
{
    (void)state;
    struct map *m = new_map(3);
    assert_null(map_oldest(m));
    put(m, "a", 1);
    put(m, "b", 2);
    put(m, "c", 3);
    assert_order(m, "cba");
    assert_int_equal(*(const int *)map_oldest(m), 1);
    assert_int_equal(*(const int *)map_oldest(m), 1);
    assert_int_equal(get(m, "a"), 1); /* a is young again */
    assert_int_equal(*(const int *)map_oldest(m), 2);
    assert_order(m, "acb");
    put(m, "d", 4);
    assert_order(m, "dac");
    assert_int_equal(get(m, "b"), -1);
    put(m, "c", 5); /* replacing makes young and drops nothing */
    assert_order(m, "cda");
    assert_int_equal(n_live, 3);
    map_free(m);
    assert_int_equal(n_live, 0);
}

static void test_removal_keeps_the_order_of_the_others(void **state)
{
    (void)state;
    struct map *m = new_map(5);
    for (const char *key = "abcde"; *key; key++)
        map_put(m, key, 1, number(*key));
    map_remove(m, "c", 1);
    assert_order(m, "edba");
    map_remove(m, "a", 1);
    map_remove(m, "e", 1);
    assert_order(m, "db");
    map_clear(m);
    assert_order(m, "");
    assert_int_equal(map_len(m), 0);
    put(m, "x", 1);
    assert_order(m, "x");
    map_free(m);
}

static void test_oldest_is_named_and_stays_the_oldest(void **state)
{
    (void)state;
    struct map *m = new_map(3);
    assert_null(map_oldest(m));
    put(m, "a", 1);
    put(m, "b", 2);
    assert_int_equal(*(int *)map_oldest(m), 1);
    assert_int_equal(*(int *)map_oldest(m), 1);
    assert_int_equal(get(m, "a"), 1);
    assert_int_equal(*(int *)map_oldest(m), 2);
    map_free(m);
}

static void test_keys_of_every_length_are_told_apart(void **state)
{
    (void)state;
    struct map *m = new_map(1000);
    char key[64] = {0}; /* zeros hash like nothing where the length is left out */
    for (int len = 0; len < 64; len++)
        map_put(m, key, (size_t)len, number(len));
    for (int at = 0; at < 64; at++) {
        char other[64] = {0};
        other[at] = 1;
        assert_null(map_get(m, other, sizeof(other)));
    }
    for (int len = 0; len < 64; len++)
        assert_int_equal(*(int *)map_get(m, key, (size_t)len), len);
    map_free(m);
}

static void test_ceiling_holds_over_many_inserts(void **state)
{
    (void)state;
    enum { CEILING = 100, INSERTS = 5000 };
    struct map *m = new_map(CEILING);
    for (int i = 0; i < INSERTS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%d", i);
        put(m, key, i);
        assert_true(map_len(m) <= CEILING);
    }
    assert_int_equal(n_live, CEILING);
    for (int i = 0; i < INSERTS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(get(m, key), i < INSERTS - CEILING ? -1 : i);
    }
    map_free(m);
    assert_int_equal(n_live, 0);
}

static void test_all_entries_survive_growth(void **state)
{
    (void)state;
    struct map *m = new_map(100000);
    for (int i = 0; i < 3000; i++)
        map_put(m, &i, sizeof(i), number(i));
    assert_int_equal(map_len(m), 3000);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(*(int *)map_get(m, &i, sizeof(i)), i);
    map_free(m);
}

static void test_ceiling_of_one_and_of_zero_keep_one_entry(void **state)
{
    (void)state;
    for (size_t ceiling = 0; ceiling < 2; ceiling++) {
        struct map *m = new_map(ceiling);
        put(m, "a", 1);
        put(m, "b", 2);
        assert_int_equal(map_len(m), 1);
        assert_int_equal(get(m, "b"), 2);
        map_free(m);
    }
}

static void test_map_without_free_leaves_values_alone(void **state)
{
    (void)state;
    int value = 7;
    struct map *m = map_new(1, NULL);
    map_put(m, "a", 1, &value);
    map_put(m, "b", 1, &value);
    map_free(m);
    map_free(NULL);
    assert_int_equal(value, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_put_is_found_until_it_is_removed),
        cmocka_unit_test(test_replacing_frees_the_old_value),
        cmocka_unit_test(test_keys_are_bytes_of_any_length),
        cmocka_unit_test(test_full_map_drops_what_was_not_used_for_longest),
        cmocka_unit_test(test_removal_keeps_the_order_of_the_others),
        cmocka_unit_test(test_oldest_is_named_and_stays_the_oldest),
        cmocka_unit_test(test_keys_of_every_length_are_told_apart),
        cmocka_unit_test(test_ceiling_holds_over_many_inserts),
        cmocka_unit_test(test_all_entries_survive_growth),
        cmocka_unit_test(test_ceiling_of_one_and_of_zero_keep_one_entry),
        cmocka_unit_test(test_map_without_free_leaves_values_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
