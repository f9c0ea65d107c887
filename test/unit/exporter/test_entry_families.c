/* Families of configured names: what they are called, and that none can be one of the page's own. */
#include "exporter/exporter.h"

#include "promtext/page.h"

#include <stdio.h>

static void test_names_are_kept_as_far_as_a_family_may_have_them(void **state)
{
    (void)state;
    static const struct {
        const char *entry, *family;
    } rows[] = {{"gpu_memory_used", "gpu_memory_used"},
                {"keda_gpu_training", "keda_gpu_training"},
                {"gpu.memory-used", "gpu_memory_used"},
                {"job:gpu:avg", "job_gpu_avg"},
                {"s0-gpu", "s0_gpu"},
                {"2nd gpu", "_2nd_gpu"},
                {"\xc3\xa9", "__"},
                {"upper", "upper"},
                {"012345678901234567890123456789012345678901234567890123456789012",
                 "_012345678901234567890123456789012345678901234567890123456789012"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[EXPORTER_NAME_MAX];
        struct err e;
        assert_int_equal(exporter_name_entry(rows[i].entry, name, &e), 0);
        assert_string_equal(name, rows[i].family);
    }
}

static void test_names_of_the_pages_own_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "keda_gpu_scaler_samples", "keda-gpu-scaler-x",    "process_open_fds",       "up",
        "grpc_server_x",           "dcgm_fi_dev_gpu_util", "scrape_duration_seconds"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[EXPORTER_NAME_MAX] = "untouched";
        struct err e;
        assert_int_equal(exporter_name_entry(rows[i], name, &e), -1);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, rows[i]));
        assert_string_equal(name, "untouched");
    }
}

/* What the golden pages have is refused, so that a new family of another kind fails here. */
static void assert_refused_of(const char *page)
{
    char path[512];
    BUF_AUTO struct buf text;
    struct err e;
    size_t n = 0;
    (void)snprintf(path, sizeof(path), "%s/golden/%s", getenv("TEST_DATA"), page);
    buf_init(&text, 1 << 20);
    assert_int_equal(file_read(path, &text, &e), 0);
    struct str rest = {text.data, text.len};
    while (rest.ptr) {
        struct str line = str_cut(&rest, '\n');
        if (!str_has_prefix(line, "# TYPE "))
            continue;
        char entry[128], name[EXPORTER_NAME_MAX];
        line = (struct str){line.ptr + 7, line.len - 7};
        assert_true(str_copy(entry, sizeof(entry), str_cut(&line, ' ')));
        str_lower(entry);
        if (!strstr(entry, "test") && exporter_name_entry(entry, name, &e) == 0)
            fail_msg("%s is a family of the page and may be an entry", entry);
        n++;
    }
    assert_true(n > 20);
}

static void test_no_family_of_the_page_may_be_an_entry(void **state)
{
    (void)state;
    assert_refused_of("metrics.txt");
    assert_refused_of("dcgm.txt");
}

static void test_entries_are_gauges_and_absent_without_a_value(void **state)
{
    (void)state;
    static const struct exporter_entry entries[] = {{"gpu_memory_used", "Help.", 62.5, NULL},
                                                    {"gpu_x", "Help.", (double)NAN, NULL},
                                                    {"gpu_y", "Help.", (double)NAN, "n1"},
                                                    {"gpu_y", "Help.", 5, "n2"},
                                                    {"gpu_y", "Help.", 6, "n3"}};
    for (int format = 0; format < 2; format++) {
        BUF_AUTO struct buf page;
        struct metrics *metrics = metrics_new();
        struct exporter *x =
            exporter_new(&(struct exporter_config){.metrics = metrics, .node_name = "n", .version = "1"});
        buf_init(&page, 1 << 20);
        exporter_render(
            x, &(struct exporter_view){.now_ns = NS_PER_S, .entries = entries, .n_entries = ARRAY_LEN(entries)},
            (enum promtext_format)format, &page);
        (void)page_check((struct str){page.data, page.len}, (enum promtext_format)format);
        assert_non_null(strstr(buf_cstr(&page), "# TYPE gpu_memory_used gauge\n"));
        assert_non_null(strstr(buf_cstr(&page), "\ngpu_memory_used 62.5\n"));
        assert_null(strstr(buf_cstr(&page), "gpu_x"));
        assert_non_null(strstr(buf_cstr(&page), "# TYPE gpu_y gauge\n"));
        assert_non_null(strstr(buf_cstr(&page), "\ngpu_y{node=\"n2\"} 5\ngpu_y{node=\"n3\"} 6\n"));
        exporter_free(x);
        metrics_free(metrics);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_kept_as_far_as_a_family_may_have_them),
        cmocka_unit_test(test_names_of_the_pages_own_are_refused),
        cmocka_unit_test(test_no_family_of_the_page_may_be_an_entry),
        cmocka_unit_test(test_entries_are_gauges_and_absent_without_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
