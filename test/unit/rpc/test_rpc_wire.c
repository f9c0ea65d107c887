/* The pure rules of gRPC's wire. */
#include "rpc/wire.h"
#include "support.h"

#include <string.h>

static void test_timeouts_are_read_in_every_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ns; /* -1 = refused */
    } rows[] = {
        {"1n", 1},
        {"99999999n", 99999999},
        {"5u", 5 * NS_PER_US},
        {"250m", 250 * NS_PER_MS},
        {"1S", NS_PER_S},
        {"2M", 120 * NS_PER_S},
        {"1H", 3600 * NS_PER_S},
        {"0S", 0},
        {"00000007m", 7 * NS_PER_MS},
        {"99999999H", INT64_MAX},
        {"59998854u", 59998854 * NS_PER_US},
        {"", -1},
        {"S", -1},
        {"5", -1},
        {"123456789n", -1},
        {"-1S", -1},
        {"+1S", -1},
        {"1s", -1},
        {"1h", -1},
        {"1 S", -1},
        {"1.5S", -1},
        {"1SS", -1},
        {"0x1S", -1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ns = -1;
        int rv = rpc_timeout_parse(str_of(rows[i].text), &ns);
        if (ns != rows[i].ns || (rv == 0) != (rows[i].ns >= 0))
            fail_msg("\"%s\" gives %lld", rows[i].text, (long long)ns);
    }
}

static void test_timeouts_are_written_in_the_finest_unit_that_fits(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {1, "1n"},
        {0, "1n"},
        {-5, "1n"},
        {99999999, "99999999n"},
        {100000000, "100000u"},
        {100000001, "100001u"},
        {NS_PER_S, "1000000u"},
        {60 * NS_PER_S, "60000000u"},
        {100 * NS_PER_S, "100000m"},
        {100000 * NS_PER_S, "100000S"},
        {INT64_MAX, "2562048H"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[RPC_TIMEOUT_MAX];
        rpc_timeout_format(text, rows[i].ns);
        assert_string_equal(text, rows[i].text);
    }
}

static void test_status_texts_are_percent_encoded_and_cut(void **state)
{
    static const struct {
        const char *text, *encoded;
    } rows[] = {
        {"plain ~text!", "plain ~text!"},
        {"50% of", "50%25 of"},
        {"a\nb\tc", "a%0Ab%09c"},
        {"gr\xC3\xBC\xC3\x9F", "gr%C3%BC%C3%9F"},
        {"bad \xFF\xC3 end", "bad ?? end"},
        {"\x7F", "%7F"},
        {"", ""},
    };
    (void)state;
    char out[RPC_ENCODED_MAX];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(rpc_percent_encode(out, rows[i].text), strlen(rows[i].encoded));
        assert_string_equal(out, rows[i].encoded);
    }
    char longest[2 * RPC_TEXT_MAX];
    memset(longest, 'x', sizeof(longest));
    longest[RPC_TEXT_MAX - 1] = '\xC3'; /* a character across the cut is left out */
    longest[RPC_TEXT_MAX] = '\xBC';
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(rpc_percent_encode(out, longest), RPC_TEXT_MAX - 1);
    memset(longest, '\n', sizeof(longest) - 1);
    assert_int_equal(rpc_percent_encode(out, longest), 3 * RPC_TEXT_MAX);
}

static void test_status_texts_are_decoded_whatever_comes(void **state)
{
    static const struct {
        const char *encoded, *text;
    } rows[] = {
        {"plain", "plain"},
        {"50%25 of", "50% of"},
        {"gr%C3%BC%c3%9f", "gr\xC3\xBC\xC3\x9F"},
        {"%", "%"},
        {"%2", "%2"},
        {"%zz%4", "%zz%4"},
        {"a%0Ab", "a b"},
        {"%00", " "},
        {"%FFx", "?x"},
        {"", ""},
        {"raw \xC3\xBC", "raw \xC3\xBC"},
        {"%25%32%35", "%25"},
    };
    (void)state;
    char out[64];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rpc_percent_decode(out, sizeof(out), str_of(rows[i].encoded));
        assert_string_equal(out, rows[i].text);
    }
    rpc_percent_decode(out, 4, str_of("abcdef"));
    assert_string_equal(out, "abc");
    rpc_percent_decode(out, 4, str_of("ab%C3%BC"));
    assert_string_equal(out, "ab");
}

static void test_content_types_of_grpc_are_known(void **state)
{
    static const struct {
        const char *text;
        bool is_grpc;
    } rows[] = {
        {"application/grpc", true},
        {"Application/GRPC", true},
        {"application/grpc+proto", true},
        {"application/grpc;charset=utf-8", true},
        {"application/grpc+proto; x=y", true},
        {"application/grpc+json", false},
        {"application/grpc-web", false},
        {"application/grpc-web+proto", false},
        {"application/grpcx", false},
        {"application/json", false},
        {"application/grp", false},
        {"", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rpc_is_grpc_content_type(str_of(rows[i].text)) != rows[i].is_grpc)
            fail_msg("%s", rows[i].text);
}

static void test_other_status_spaces_are_mapped(void **state)
{
    (void)state;
    static const struct {
        int http;
        enum err_class class;
    } http[] = {{400, ERR_INTERNAL},      {401, ERR_UNAUTHENTICATED}, {403, ERR_PERMISSION_DENIED},
                {404, ERR_UNIMPLEMENTED}, {429, ERR_UNAVAILABLE},     {431, ERR_INTERNAL},
                {502, ERR_UNAVAILABLE},   {503, ERR_UNAVAILABLE},     {504, ERR_UNAVAILABLE},
                {500, ERR_UNKNOWN},       {200, ERR_UNKNOWN},         {302, ERR_UNKNOWN}};
    for (size_t i = 0; i < ARRAY_LEN(http); i++)
        assert_int_equal(rpc_class_of_http(http[i].http), http[i].class);
    assert_int_equal(rpc_class_of_reset(7), ERR_UNAVAILABLE);
    assert_int_equal(rpc_class_of_reset(8), ERR_CANCELLED);
    assert_int_equal(rpc_class_of_reset(11), ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(rpc_class_of_reset(12), ERR_PERMISSION_DENIED);
    assert_int_equal(rpc_class_of_reset(0), ERR_INTERNAL);
    assert_int_equal(rpc_class_of_reset(2), ERR_INTERNAL);
    assert_string_equal(rpc_code_label(ERR_NONE), "OK");
    assert_string_equal(rpc_code_label(ERR_CANCELLED), "Canceled");
    assert_string_equal(rpc_code_label(ERR_INVALID_ARGUMENT), "InvalidArgument");
}

/* Feed `bytes` in pieces of `step`; expect the messages "abc", "" and "de". */
static void read_in_steps(const char *bytes, size_t len, size_t step, bool is_held)
{
    static const char *const want[] = {"abc", "", "de"};
    struct rpc_reader r;
    size_t n = 0;
    rpc_reader_init(&r, 16, is_held);
    for (size_t at = 0; at < len; at += step) {
        MEM_AUTO char *piece = mem_strndup(bytes + at, at + step < len ? step : len - at);
        struct str rest = {piece, at + step < len ? step : len - at}, message;
        while (rest.len > 0)
            if (rpc_reader_feed(&r, &rest, &message) == RPC_READ_MESSAGE) {
                assert_true(n < 3);
                assert_true(str_equals(message, want[n]));
                n++;
            }
    }
    assert_int_equal(n, 3);
    assert_false(rpc_reader_is_inside(&r));
    rpc_reader_fini(&r);
}

static void test_messages_are_found_however_the_bytes_are_split(void **state)
{
    static const char bytes[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de";
    (void)state;
    for (size_t step = 1; step < sizeof(bytes); step++) {
        read_in_steps(bytes, sizeof(bytes) - 1, step, false);
        read_in_steps(bytes, sizeof(bytes) - 1, step, true);
    }
}

static void test_prefixes_are_judged_before_memory_is_taken(void **state)
{
    static const struct {
        const char *prefix;
        enum rpc_read read;
    } rows[] = {
        {"\0\0\0\0\21", RPC_READ_TOO_BIG},   {"\0\xFF\xFF\xFF\xFF", RPC_READ_TOO_BIG},
        {"\1\0\0\0\1", RPC_READ_COMPRESSED}, {"\2\0\0\0\1", RPC_READ_BAD_FLAG},
        {"\xFF\0\0\0\1", RPC_READ_BAD_FLAG}, {"\0\0\0\0\20", RPC_READ_MORE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rpc_reader r;
        struct str rest = {rows[i].prefix, 5}, message;
        rpc_reader_init(&r, 16, true);
        assert_int_equal(rpc_reader_feed(&r, &rest, &message), rows[i].read);
        assert_true(r.message.capacity <= 128);
        rpc_reader_fini(&r);
    }
}

static void test_a_large_message_that_came_in_pieces_is_let_go_of_at_the_next(void **state)
{
    enum { LEN = 100000 };
    (void)state;
    static char bytes[RPC_PREFIX_BYTES + LEN];
    struct rpc_reader r;
    struct str message;
    rpc_reader_init(&r, LEN, false);
    rpc_prefix_write((uint8_t *)bytes, LEN);
    struct str first = {bytes, LEN / 2}, second = {bytes + LEN / 2, sizeof(bytes) - LEN / 2};
    assert_int_equal(rpc_reader_feed(&r, &first, &message), RPC_READ_MORE);
    assert_int_equal(rpc_reader_feed(&r, &second, &message), RPC_READ_MESSAGE);
    assert_int_equal(message.len, LEN);
    rpc_prefix_write((uint8_t *)bytes, 3);
    first = (struct str){bytes, RPC_PREFIX_BYTES + 1};
    assert_int_equal(rpc_reader_feed(&r, &first, &message), RPC_READ_MORE);
    assert_true(r.message.capacity <= 1024);
    second = (struct str){bytes, 2};
    assert_int_equal(rpc_reader_feed(&r, &second, &message), RPC_READ_MESSAGE);
    assert_int_equal(message.len, 3);
    rpc_reader_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeouts_are_read_in_every_unit),
        cmocka_unit_test(test_timeouts_are_written_in_the_finest_unit_that_fits),
        cmocka_unit_test(test_status_texts_are_percent_encoded_and_cut),
        cmocka_unit_test(test_status_texts_are_decoded_whatever_comes),
        cmocka_unit_test(test_content_types_of_grpc_are_known),
        cmocka_unit_test(test_other_status_spaces_are_mapped),
        cmocka_unit_test(test_messages_are_found_however_the_bytes_are_split),
        cmocka_unit_test(test_prefixes_are_judged_before_memory_is_taken),
        cmocka_unit_test(test_a_large_message_that_came_in_pieces_is_let_go_of_at_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
