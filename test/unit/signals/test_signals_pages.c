/* The pages of every engine and version in test/pages: what each says for each signal. A page is read twice, ten
 * seconds apart, the first time with all counters at zero. */
#include "signals/aliases.h"

#include "pages.h"

#include <math.h>
#include <stdio.h>

#define NONE ((double)NAN)

static const struct {
    const char *name;
    enum signals_engine engine;
    double waiting, running, in_flight, kv, tokens_waiting, tokens, queue_ms, ttft_ms, itl_ms, requests;
} pages[] = {
    {"vllm-0.6", SIGNALS_ENGINE_VLLM, 0, 12, 12, 37.5, 0, 900, 100, 300, 25, 6},
    {"vllm-0.10", SIGNALS_ENGINE_VLLM, 8, 32, 40, 125, 6400, 2000, 100, 200, 25, 10},
    {"vllm-0.30", SIGNALS_ENGINE_VLLM, 8, 80, 88, 110, 16000, 3000, 500, 1000, 25, 8},
    {"vllm-ray-2.52", SIGNALS_ENGINE_VLLM, 3, 12, 15, 125, 1500, 400, 100, 200, 20, 4},
    {"sglang-0.4", SIGNALS_ENGINE_SGLANG, 0, 24, 24, 28, 0, 600, NONE, 250, 20, 4},
    {"sglang-0.5", SIGNALS_ENGINE_SGLANG, 6, 24, 30, 125, 3600, 1200, 500, 500, 25, 5},
    {"tgi-3.0", SIGNALS_ENGINE_TGI, 3, 5, 8, 160, 360, 1200, 20, NONE, 25, 15},
    {"triton-24.05", SIGNALS_ENGINE_TRITON, 14, NONE, 14, NONE, NONE, NONE, 10, NONE, NONE, 20},
    {"triton-trtllm-0.7", SIGNALS_ENGINE_TRITON, NONE, 30, 30, 4679 / 62.39, NONE, NONE, 50, NONE, NONE, 5},
    {"triton-trtllm-1.0", SIGNALS_ENGINE_TRITON, 4, 30, 34, 3400.0 / 30, NONE, NONE, 50, 250, NONE, 5},
    {"trtllm-1.2", SIGNALS_ENGINE_TRTLLM, 16, 48, 64, 6400.0 / 48, 8000, 1600, 100, 200, 20, 8},
    {"llamacpp-b4000", SIGNALS_ENGINE_LLAMA_CPP, 0, 4, 4, 42, NONE, 400, NONE, NONE, NONE, NONE},
    {"llamacpp-b6500", SIGNALS_ENGINE_LLAMA_CPP, 6, 4, 10, 200, NONE, 400, NONE, NONE, NONE, NONE},
    {"ray-serve-2.31", SIGNALS_ENGINE_RAY_SERVE, 7, 8, 15, 187.5, NONE, NONE, NONE, NONE, NONE, 10},
    /* What programs wrote themselves: see test/pages/README.md. */
    {"vllm-0.10-recorded", SIGNALS_ENGINE_VLLM, 14, 62, 76, 7600.0 / 62, 7168, 64, 400, 200, 25, 1},
    {"vllm-0.12-recorded", SIGNALS_ENGINE_VLLM, 14, 62, 76, 7600.0 / 62, 7168, 64, 400, 200, 25, 1},
    {"vllm-0.33-recorded", SIGNALS_ENGINE_VLLM, 14, 62, 76, 7600.0 / 62, 7168, 64, 400, 200, 25, 1},
    {"vllm-ray-2.60-recorded", SIGNALS_ENGINE_VLLM, 14, 62, 76, 7600.0 / 62, 10500, 64, 400, 175, 17.5, 1},
    {"sglang-0.4.6-recorded", SIGNALS_ENGINE_SGLANG, 6, 24, 30, 125, 3600, 120, NONE, 500, 25, 0.5},
    {"sglang-0.5.3-recorded", SIGNALS_ENGINE_SGLANG, 6, 24, 30, 125, 3600, 120, 500, 500, 25, 0.5},
    {"sglang-0.5.23-recorded", SIGNALS_ENGINE_SGLANG, 6, 24, 30, 125, 3600, 120, 500, 500, 25, 0.5},
    {"llamacpp-b10434-recorded", SIGNALS_ENGINE_LLAMA_CPP, 3, 2, 5, 200, NONE, 120, NONE, NONE, NONE, NONE},
    {"ray-serve-2.60-recorded", SIGNALS_ENGINE_RAY_SERVE, 8, 4, 12, 200, NONE, NONE, NONE, NONE, NONE, 0.1},
};

static void load_file(const char *name, struct buf *out)
{
    char path[512];
    const char *data = getenv("TEST_DATA");
    (void)snprintf(path, sizeof(path), "%s/%s", data ? data : "test", name);
    FILE *file = fopen(path, "re");
    if (!file)
        fail_msg("%s cannot be read", path);
    size_t n;
    buf_init(out, 1 << 20);
    while ((n = fread(buf_reserve(out, 4096), 1, 4096, file)) > 0)
        buf_advance(out, n);
    (void)fclose(file);
}

static void load(const char *page, struct buf *out)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "pages/%s.txt", page);
    load_file(name, out);
}

/* The same page with 0 for the value of each line of a counter or histogram. */
static void with_zero_counters(struct str page, struct buf *out)
{
    bool is_counter = false;
    buf_init(out, 1 << 20);
    while (page.ptr) {
        struct str line = str_cut(&page, '\n');
        if (str_has_prefix(line, "# TYPE "))
            is_counter = str_has_suffix(line, " counter") || str_has_suffix(line, " histogram");
        if (is_counter && line.len && line.ptr[0] != '#') {
            while (line.ptr[line.len - 1] != ' ')
                line.len--;
            (void)buf_printf(out, "%.*s0\n", (int)line.len, line.ptr);
        } else {
            (void)buf_printf(out, "%.*s\n", (int)line.len, line.ptr);
        }
    }
}

static void check(const char *page, const struct signals_history *h, enum signals_id signal, double want)
{
    struct signals_answer a = ask(h, signal, 10, 10);
    if (isnan(want)) {
        if (a.reading != SIGNALS_READ_ABSENT)
            fail_msg("%s: %s is %s, want absent", page, signals_name(signal), signals_reading_name(a.reading));
        return;
    }
    if (a.reading != SIGNALS_READ_OK)
        fail_msg("%s: %s is %s (%s)", page, signals_name(signal), signals_reading_name(a.reading), a.missing);
    if (!(fabs(a.value - want) <= 1e-4 * fmax(1, want)))
        fail_msg("%s: %s is %.9g, want %.9g", page, signals_name(signal), a.value, want);
}

static void test_every_page_says_what_each_signal_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        BUF_AUTO struct buf page, before;
        const char *name = pages[i].name;
        load(name, &page);
        with_zero_counters((struct str){page.data, page.len}, &before);
        struct signals_history *h = signals_history_new();
        add_page(h, buf_cstr(&before), 0);
        add_page(h, buf_cstr(&page), 10);
        assert_int_equal(ask(h, SIGNALS_REQUESTS_RUNNING, 10, 10).engine, pages[i].engine);
        /* Levels are those of the newest page: both are the same. */
        check(name, h, SIGNALS_REQUESTS_WAITING, pages[i].waiting);
        check(name, h, SIGNALS_REQUESTS_RUNNING, pages[i].running);
        check(name, h, SIGNALS_REQUESTS_IN_FLIGHT, pages[i].in_flight);
        check(name, h, SIGNALS_KV_CACHE_USAGE, pages[i].kv);
        check(name, h, SIGNALS_TOKENS_WAITING, pages[i].tokens_waiting);
        check(name, h, SIGNALS_TOKENS_PER_SECOND, pages[i].tokens);
        check(name, h, SIGNALS_QUEUE_WAIT_MS, pages[i].queue_ms);
        check(name, h, SIGNALS_TIME_TO_FIRST_TOKEN_MS, pages[i].ttft_ms);
        check(name, h, SIGNALS_INTER_TOKEN_LATENCY_MS, pages[i].itl_ms);
        check(name, h, SIGNALS_REQUEST_RATE, pages[i].requests);
        signals_history_free(h);
    }
}

static void test_every_page_reads_the_same_a_byte_at_a_time(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 1000};
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
            BUF_AUTO struct buf text;
            struct err e;
            load(pages[i].name, &text);
            struct signals_history *whole = history_of(buf_cstr(&text)), *cut = signals_history_new();
            struct signals_page *page = read_page_in(text.data, text.len, pieces[k], NULL, &e);
            assert_non_null(page);
            signals_history_add(cut, page, AT(0));
            for (int signal = 0; signal < SIGNALS_COUNT; signal++) {
                struct signals_answer a = ask(whole, (enum signals_id)signal, 0, 0),
                                      b = ask(cut, (enum signals_id)signal, 0, 0);
                assert_int_equal(a.reading, b.reading);
                assert_double_same(a.value, b.value);
            }
            signals_history_free(whole);
            signals_history_free(cut);
        }
}

static void test_every_name_stands_in_the_document(void **state)
{
    (void)state;
    BUF_AUTO struct buf text;
    load_file("../docs/engines.md", &text);
    for (size_t i = 0; i < aliases_len; i++) {
        char quoted[ALIAS_NAME_MAX + 2];
        (void)snprintf(quoted, sizeof(quoted), "`%s`", aliases[i].name);
        if (!strstr(buf_cstr(&text), quoted))
            fail_msg("docs/engines.md does not have %s", aliases[i].name);
    }
    for (int i = 0; i < SIGNALS_COUNT; i++)
        if (!strstr(buf_cstr(&text), signals_name((enum signals_id)i)))
            fail_msg("docs/engines.md does not have %s", signals_name((enum signals_id)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_page_says_what_each_signal_is),
        cmocka_unit_test(test_every_page_reads_the_same_a_byte_at_a_time),
        cmocka_unit_test(test_every_name_stands_in_the_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
