/* All addresses of a name: without a name server, by /etc/hosts and numbers. */
#include "net/net.h"

#include "support.h"

#include <string.h>

struct answer {
    size_t n_calls, n;
    char first[64];
    bool is_error;
};

static void on_done(void *context, const char *const *addresses, size_t n, const struct err *error)
{
    struct answer *a = context;
    a->n_calls++;
    a->n = n;
    a->is_error = error != NULL;
    if (n)
        (void)str_copy(a->first, sizeof(a->first), str_of(addresses[0]));
}

static void wait_for(struct net_loop *loop, const struct answer *a)
{
    while (a->n_calls == 0)
        assert_true(net_loop_turn(loop) || a->n_calls);
}

static void test_a_name_gives_addresses_that_can_be_dialled(void **state)
{
    (void)state;
    static const struct {
        const char *address, *first;
        bool is_error;
    } rows[] = {
        {"127.0.0.1:6000", "127.0.0.1:6000", false},
        {"[::1]:7", "[::1]:7", false},
        {"nonsense", "", true},
    };
    struct err e;
    struct net_loop *loop = net_loop_new(NULL, &e);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer a = {.n_calls = 0};
        (void)net_lookup_start(loop, rows[i].address, on_done, &a);
        assert_int_equal(a.n_calls, 0);
        wait_for(loop, &a);
        assert_string_equal(a.first, rows[i].first);
        assert_int_equal(a.is_error, rows[i].is_error);
        assert_true(a.is_error == (a.n == 0));
    }
    net_loop_free(loop);
}

static void test_a_cancelled_look_up_tells_nobody(void **state)
{
    (void)state;
    struct err e;
    struct answer a = {.n_calls = 0};
    struct net_loop *loop = net_loop_new(NULL, &e);
    net_lookup_cancel(net_lookup_start(loop, "127.0.0.1:1", on_done, &a));
    net_lookup_cancel(NULL);
    net_loop_free(loop); /* waits for the worker */
    assert_int_equal(a.n_calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_gives_addresses_that_can_be_dialled),
        cmocka_unit_test(test_a_cancelled_look_up_tells_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
