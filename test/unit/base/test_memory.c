/* Buffers, arenas, vectors: growth, ceilings, what is owned. */
#include "base/base.h"

#include "support.h"

#include <string.h>

static void test_new_memory_is_zeroed_and_never_null(void **state)
{
    (void)state;
    MEM_AUTO char *empty = (char *)mem_new_array(0, 0);
    MEM_AUTO char *bytes = (char *)mem_new_array(100, 1);
    assert_non_null(empty);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(bytes[i], 0);
}

static void test_copies_end_with_nul(void **state)
{
    (void)state;
    MEM_AUTO char *whole = mem_strdup("abc");
    MEM_AUTO char *part = mem_strndup("abcdef", 2);
    MEM_AUTO char *none = mem_strndup("", 0);
    assert_string_equal(whole, "abc");
    assert_string_equal(part, "ab");
    assert_string_equal(none, "");
}

static void test_text_of_others_cannot_command_a_terminal(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 100);
    buf_make_printable(&b, 0);
    (void)buf_append_str(&b, "a\tb");
    size_t from = b.len;
    (void)buf_append_str(&b, "node\x1b[2J\r\x7f\n\xc3\xa9\xc2\x9b\xc2\xa0\xc2");
    buf_make_printable(&b, from);
    assert_string_equal(buf_cstr(&b),
                        "a\tbnode?[2J??\n\xc3\xa9??\xc2\xa0\xc2"); /* U+009B is a control, U+00A0 is none */
}

static void test_buffer_takes_exactly_its_ceiling(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 10);
    assert_int_equal(buf_append(&b, "12345", 5), 0);
    assert_int_equal(buf_append(&b, "67890", 5), 0);
    assert_false(b.is_overflowed);
    assert_int_equal(b.len, 10);
    assert_true(b.capacity <= 11);
    assert_string_equal(buf_cstr(&b), "1234567890");
}

static void test_buffer_over_its_ceiling_takes_nothing_more_until_reset(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 10);
    assert_int_equal(buf_append_str(&b, "12345678"), 0);
    assert_int_equal(buf_append_str(&b, "901"), -1);
    assert_true(b.is_overflowed);
    assert_int_equal(buf_append_char(&b, '9'), -1);
    assert_int_equal(buf_printf(&b, "%d", 9), -1);
    assert_null(buf_reserve(&b, 1));
    assert_string_equal(buf_cstr(&b), "12345678");
    buf_reset(&b);
    assert_false(b.is_overflowed);
    assert_int_equal(buf_append_char(&b, 'x'), 0);
    assert_string_equal(buf_cstr(&b), "x");
}

static void test_huge_appends_do_not_wrap_around(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 10);
    (void)buf_append_str(&b, "abc");
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_null(buf_reserve(&b, SIZE_MAX - 2));
    assert_string_equal(buf_cstr(&b), "abc");
}

static void test_empty_buffer_is_an_empty_string(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 0);
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_int_equal(buf_append_str(&b, "x"), -1);
    assert_string_equal(buf_cstr(&b), "");
}

static void test_buffer_grows_over_many_appends(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_printf(&b, "%04d,", i), 0);
    assert_int_equal(b.len, 50000);
    assert_memory_equal(b.data + 5L * 9999, "9999,", 5);
}

static void test_reserve_then_advance_appends_in_place(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 100);
    char *at = buf_reserve(&b, 50);
    assert_non_null(at);
    memcpy(at, "hello", 5);
    buf_advance(&b, 5);
    buf_advance(&b, 0);
    assert_string_equal(buf_cstr(&b), "hello");
}

static void test_consume_drops_from_the_front_and_at_most_all(void **state)
{
    (void)state;
    BUF_AUTO struct buf b;
    buf_init(&b, 100);
    (void)buf_append_str(&b, "abcdef");
    buf_consume(&b, 0);
    buf_consume(&b, 2);
    assert_string_equal(buf_cstr(&b), "cdef");
    buf_consume(&b, 100);
    assert_int_equal(b.len, 0);
    buf_consume(&b, 1);
    assert_string_equal(buf_cstr(&b), "");
}

static void test_arena_memory_is_aligned_apart_and_usable(void **state)
{
    (void)state;
    ARENA_AUTO struct arena a;
    arena_init(&a, 1 << 20);
    char *last = NULL;
    for (size_t size = 1; size < 500; size++) {
        char *memory = (char *)arena_alloc(&a, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 16, 0);
        assert_ptr_not_equal(memory, last);
        memset(memory, 0x5A, size);
        last = memory;
    }
}

static void test_arena_never_holds_more_than_its_cap(void **state)
{
    (void)state;
    static const size_t caps[] = {64, 100, 1000, 2048, 5000, 65536, 200001};
    static const size_t sizes[] = {1, 16, 17, 300, 4096};
    for (size_t c = 0; c < ARRAY_LEN(caps); c++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
            ARENA_AUTO struct arena a;
            arena_init(&a, caps[c]);
            size_t given = 0;
            while (arena_alloc(&a, sizes[s]))
                given += sizes[s];
            assert_true(a.used_bytes <= caps[c]);
            assert_true(given <= caps[c]);
            if (caps[c] >= 2 * sizes[s] + 64) /* and it is not wasteful either */
                assert_true(given > 0);
        }
}

static void test_arena_refuses_sizes_near_the_end_of_memory(void **state)
{
    (void)state;
    ARENA_AUTO struct arena a;
    arena_init(&a, 4096);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 14));
    assert_null(arena_alloc(&a, 4096));
    assert_non_null(arena_alloc(&a, 2048));
}

static void test_arena_copies_text(void **state)
{
    (void)state;
    ARENA_AUTO struct arena a;
    arena_init(&a, 100);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_null(arena_strndup(&a, "abc", 200)); /* refused before it is read */
}

static void test_arena_is_reusable_after_fini(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 3000);
    for (int i = 0; i < 3; i++) {
        assert_non_null(arena_alloc(&a, 2500));
        assert_null(arena_alloc(&a, 2500));
        arena_fini(&a);
        assert_int_equal(a.used_bytes, 0);
    }
}

static void test_vector_grows_and_keeps_order_on_removal(void **state)
{
    (void)state;
    VEC(int) numbers = {0};
    for (int i = 0; i < 100; i++)
        vec_push(&numbers, i);
    assert_int_equal(numbers.len, 100);
    vec_remove(&numbers, 0);
    vec_remove(&numbers, 98);
    vec_remove(&numbers, 49);
    assert_int_equal(numbers.len, 97);
    assert_int_equal(numbers.items[0], 1);
    assert_int_equal(numbers.items[48], 49);
    assert_int_equal(numbers.items[49], 51);
    assert_int_equal(numbers.items[96], 98);
    vec_fini(&numbers);
    assert_null(numbers.items);
    vec_fini(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_memory_is_zeroed_and_never_null),
        cmocka_unit_test(test_copies_end_with_nul),
        cmocka_unit_test(test_buffer_takes_exactly_its_ceiling),
        cmocka_unit_test(test_text_of_others_cannot_command_a_terminal),
        cmocka_unit_test(test_buffer_over_its_ceiling_takes_nothing_more_until_reset),
        cmocka_unit_test(test_huge_appends_do_not_wrap_around),
        cmocka_unit_test(test_empty_buffer_is_an_empty_string),
        cmocka_unit_test(test_buffer_grows_over_many_appends),
        cmocka_unit_test(test_reserve_then_advance_appends_in_place),
        cmocka_unit_test(test_consume_drops_from_the_front_and_at_most_all),
        cmocka_unit_test(test_arena_memory_is_aligned_apart_and_usable),
        cmocka_unit_test(test_arena_never_holds_more_than_its_cap),
        cmocka_unit_test(test_arena_refuses_sizes_near_the_end_of_memory),
        cmocka_unit_test(test_arena_copies_text),
        cmocka_unit_test(test_arena_is_reusable_after_fini),
        cmocka_unit_test(test_vector_grows_and_keeps_order_on_removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
