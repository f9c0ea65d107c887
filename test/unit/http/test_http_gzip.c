/* gzip: who takes it, and that it comes back as it went in. */
#include "support.h"

#include "http/http.h"

#include <string.h>
#include <zlib.h>

static void test_accept_encoding(void **state)
{
    static const struct {
        const char *text;
        bool is_accepted;
    } cases[] = {
        {"", false},
        {"gzip", true},
        {"GZIP", true},
        {"x-gzip", true},
        {"deflate, gzip;q=1.0, *;q=0.5", true},
        {"deflate, br", false},
        {"gzip;q=0", false},
        {"gzip; q=0.000", false},
        {"gzip;q=0.001", true},
        {"gzip ; q=0.5", true},
        {"gzip;foo=bar;q=0", false},
        {"gzip;q=nonsense", false},
        {"gzip;q=2", false},
        {"*", true},
        {"*;q=0", false},
        {"*;q=0, gzip", true},
        {"*, gzip;q=0", false},
        {"gzipped", false},
        {",,gzip,", true},
        {"identity", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (http_accepts_gzip(str_of(cases[i].text)) != cases[i].is_accepted)
            print_error("case: %s\n", cases[i].text);
        assert_int_equal(http_accepts_gzip(str_of(cases[i].text)), cases[i].is_accepted);
    }
    assert_false(http_accepts_gzip((struct str){NULL, 0}));
}

static void test_what_is_compressed_comes_back(void **state)
{
    BUF_AUTO struct buf body, text;
    unsigned char *out = (unsigned char *)mem_new_array(200000, 1);
    (void)state;
    buf_init(&body, 1 << 20);
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 5000; i++)
        (void)buf_printf(&body, "metric{gpu=\"%d\"} %d\n", i % 8, i);
    (void)buf_append(&text, body.data, body.len);
    assert_int_equal(http_gzip(&body), 0);
    assert_true(body.len < text.len / 2);
    z_stream z = {.next_in = (Bytef *)body.data, .avail_in = (uInt)body.len, .next_out = out, .avail_out = 200000};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, text.len);
    assert_memory_equal(out, text.data, text.len);
    (void)inflateEnd(&z);
    free(out);
}

static void test_what_would_not_get_smaller_stays(void **state)
{
    BUF_AUTO struct buf body;
    (void)state;
    buf_init(&body, 1024);
    assert_int_equal(http_gzip(&body), -1);
    (void)buf_append_str(&body, "x");
    assert_int_equal(http_gzip(&body), -1);
    (void)buf_append_str(&body, "yz1");
    assert_int_equal(http_gzip(&body), -1);
    assert_string_equal(buf_cstr(&body), "xyz1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_encoding),
        cmocka_unit_test(test_what_is_compressed_comes_back),
        cmocka_unit_test(test_what_would_not_get_smaller_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
