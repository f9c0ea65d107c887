/* Pages: each engine's text is a valid exposition, has the names and labels of that engine, and says what its model
 * does. */
#include "support.h"

#include "enginesim/page.h"

#include <stdio.h>
#include <string.h>

struct seen {
    struct buf series; /* every name with its labels, a line each */
    const char *wanted;
    double value; /* of the wanted one */
    size_t n, n_wanted, n_twice;
};

/* "name{a="1",b="2"}" of a sample. */
static void describe(const struct promtext_read_sample *sample, char *out, size_t size)
{
    int len = snprintf(out, size, "\n%.*s{", (int)sample->name.len, sample->name.ptr);
    for (size_t i = 0; i < sample->n_labels; i++)
        len += snprintf(out + len, size - (size_t)len, "%s%.*s=%.*s", i ? "," : "", (int)sample->labels[i].name.len,
                        sample->labels[i].name.ptr, (int)sample->labels[i].value.len, sample->labels[i].value.ptr);
    (void)snprintf(out + len, size - (size_t)len, "}\n");
}

static void see(void *context, const struct promtext_read_sample *sample)
{
    struct seen *seen = (struct seen *)context;
    char text[512];
    describe(sample, text, sizeof(text));
    seen->n++;
    seen->n_twice += strstr(buf_cstr(&seen->series), text) != NULL;
    assert_int_equal(buf_append_str(&seen->series, text), 0);
    size_t len = strlen(seen->wanted);
    if (!strncmp(text + 1, seen->wanted, len) && (text[1 + len] == '\n' || text[1 + len] == '{')) {
        seen->value = sample->value;
        seen->n_wanted++;
    }
}

static struct seen look(struct buf *page, const char *wanted)
{
    struct seen seen = {.wanted = wanted};
    struct err e = {0};
    size_t n_bad = 0;
    buf_init(&seen.series, 8 << 20);
    assert_int_equal(promtext_read((struct str){page->data, page->len}, see, &seen, &n_bad, &e), 0);
    assert_int_equal(n_bad, 0);
    assert_int_equal(seen.n_twice, 0);
    buf_fini(&seen.series);
    return seen;
}

/* The page of a server after so many seconds. */
static void play(const char *server, double now_s, struct buf *page)
{
    char text[512];
    const struct script_source source = {.name = "s.yaml"};
    struct err e = {0};
    (void)snprintf(text, sizeof(text), "servers: [{listen: \"127.0.0.1:1\", model: m, %s}]", server);
    struct script *script = script_parse(&source, str_of(text), &e);
    if (!script)
        fail_msg("%s", e.text);
    struct model m;
    model_init(&m, script->servers, 1, 0, 0);
    model_advance(&m, now_s);
    buf_init(page, 1 << 20);
    page_write(&m, 1e9, page);
    model_fini(&m);
    script_free(script);
}

/* 4 a second come, 2 can be served: after 100 s 8 run, about 200 wait, about 192 have ended. */
#define BUSY "arrivals: 4, service_rate: 2, slots: 8, kv_per_request_percent: 10, prompt_tokens: 100, output_tokens: 50"

static void test_every_engine_says_what_its_model_does(void **state)
{
    static const struct {
        const char *server, *name;
        double value, tolerance;
    } cases[] = {
        {"engine: vllm", "vllm:num_requests_running{engine=0,model_name=m}", 8, 0},
        {"engine: vllm", "vllm:num_requests_waiting{engine=0,model_name=m}", 192, 8},
        {"engine: vllm", "vllm:kv_cache_usage_perc{engine=0,model_name=m}", 0.8, 1e-9},
        {"engine: vllm", "vllm:request_success_total{engine=0,model_name=m,finished_reason=stop}", 192, 4},
        {"engine: vllm", "vllm:prompt_tokens_total{engine=0,model_name=m}", 20000, 500},
        {"engine: vllm", "vllm:generation_tokens_total{engine=0,model_name=m}", 9800, 200},
        {"engine: vllm", "vllm:prompt_tokens_created{engine=0,model_name=m}", 1e9, 0},
        {"engine: vllm", "vllm:request_queue_time_seconds_count{engine=0,model_name=m}", 192, 4},
        {"engine: vllm", "vllm:inter_token_latency_seconds_count{engine=0,model_name=m}", 192 * 49, 200},
        {"engine: vllm", "process_start_time_seconds{}", 1e9, 0},
        {"engine: vllm, waiting_by_reason: true",
         "vllm:num_requests_waiting_by_reason{engine=0,model_name=m,reason=capacity}", 192, 8},
        {"engine: vllm, names: old", "vllm:gpu_cache_usage_perc{model_name=m}", 0.8, 1e-9},
        {"engine: vllm, names: old", "vllm:time_per_output_token_seconds_count{model_name=m}", 192 * 49, 200},
        {"engine: sglang", "sglang:num_queue_reqs{engine_type=unified,model_name=m,moe_ep_rank=0,pp_rank=0,tp_rank=0}",
         192, 8},
        {"engine: sglang", "sglang:token_usage{engine_type=unified,model_name=m,moe_ep_rank=0,pp_rank=0,tp_rank=0}",
         0.8, 1e-9},
        {"engine: sglang", "sglang:num_requests_total{model_name=m}", 192, 4},
        {"engine: tgi", "tgi_queue_size{}", 192, 8},
        {"engine: tgi", "tgi_batch_current_size{}", 8, 0},
        {"engine: tgi", "tgi_request_success{}", 192, 4},
        {"engine: tgi", "tgi_request_generated_tokens_sum{}", 192 * 50, 200},
        {"engine: triton", "nv_inference_pending_request_count{model=m,version=1}", 192, 8},
        {"engine: triton", "nv_inference_count{model=m,version=1}", 192, 4},
        {"engine: triton", "nv_inference_request_duration_us{model=m,version=1}", 192 * 27e6, 2e8},
        {"engine: triton", "nv_gpu_utilization{gpu_uuid=GPU-00000000-0000-4000-8000-000000000001}", 1, 0},
        {"engine: triton-tensorrtllm", "nv_trt_llm_request_metrics{model=m,version=1,request_type=waiting}", 192, 8},
        {"engine: triton-tensorrtllm", "nv_trt_llm_request_metrics{model=m,version=1,request_type=scheduled}", 8, 0},
        {"engine: triton-tensorrtllm",
         "nv_trt_llm_kv_cache_block_metrics{model=m,version=1,kv_cache_block_type=fraction}", 0.8, 1e-9},
        {"engine: trtllm", "trtllm_num_requests_waiting{model_name=m}", 192, 8},
        {"engine: trtllm", "trtllm_kv_cache_utilization{model_name=m}", 0.8, 1e-9},
        {"engine: llamacpp", "llamacpp:requests_processing{}", 8, 0},
        {"engine: llamacpp", "llamacpp:requests_deferred{}", 192, 8},
        {"engine: llamacpp", "llamacpp:tokens_predicted_total{}", 9800, 200},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char server[400];
        struct buf page;
        (void)snprintf(server, sizeof(server), "%s, %s", cases[i].server, BUSY);
        play(server, 100, &page);
        struct seen seen = look(&page, cases[i].name);
        if (seen.n_wanted != 1)
            fail_msg("%s: %s is there %zu times:\n%s", server, cases[i].name, seen.n_wanted, buf_cstr(&page));
        assert_double_near(seen.value, cases[i].value, cases[i].tolerance);
        buf_fini(&page);
    }
}

static void test_names_of_other_versions_are_not_there(void **state)
{
    static const struct {
        const char *server, *name;
        size_t n;
    } cases[] = {
        {"engine: vllm", "vllm:gpu_cache_usage_perc", 0},
        {"engine: vllm", "vllm:time_per_output_token_seconds_sum", 0},
        {"engine: vllm", "vllm:num_requests_waiting_by_reason", 0},
        {"engine: vllm, names: old", "vllm:kv_cache_usage_perc", 0},
        {"engine: vllm, names: old", "vllm:inter_token_latency_seconds_sum", 0},
        {"engine: vllm, names: both", "vllm:kv_cache_usage_perc", 1},
        {"engine: vllm, names: both", "vllm:gpu_cache_usage_perc", 1},
        {"engine: vllm, names: both", "vllm:inter_token_latency_seconds_sum", 1},
        {"engine: vllm, names: both", "vllm:time_per_output_token_seconds_sum", 1},
        {"engine: vllm, api_servers: 4", "process_start_time_seconds", 0},
        {"engine: vllm, api_servers: 4", "vllm:prompt_tokens_created", 0},
        {"engine: vllm, ranks: 3", "vllm:num_requests_running", 3},
        {"engine: sglang, ranks: 2, tensor_ranks: 4", "sglang:num_running_reqs", 8},
        {"engine: sglang, ranks: 8, tensor_ranks: 8, attention_dp: true", "sglang:num_running_reqs", 8},
        {"engine: sglang, ranks: 2, tensor_ranks: 4", "sglang:prompt_tokens_total", 1},
        {"engine: sglang", "sglang:prompt_tokens_created", 0},
        {"engine: tgi, ranks: 3", "tgi_queue_size", 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf page;
        play(cases[i].server, 10, &page);
        struct seen seen = look(&page, cases[i].name);
        if (seen.n_wanted != cases[i].n)
            fail_msg("%s: %s is there %zu times", cases[i].server, cases[i].name, seen.n_wanted);
        buf_fini(&page);
    }
}

static void test_ranks_that_share_a_line_add_up(void **state)
{
    struct buf page;
    (void)state;
    play("engine: tgi, ranks: 3, " BUSY, 100, &page); /* 4 a second over three ranks: none is full */
    assert_double_near(look(&page, "tgi_batch_current_size").value, 16, 1);
    assert_double_near(look(&page, "tgi_request_duration_count").value, 384, 2);
    assert_double_near(look(&page, "tgi_request_duration_sum").value, 384 * 4, 8);
    buf_fini(&page);
}

static void test_a_page_is_as_long_as_wanted(void **state)
{
    struct buf page;
    (void)state;
    play("engine: vllm, pad_bytes: 120000", 1, &page);
    assert_true(page.len >= 120000 && page.len < 124000);
    assert_int_equal(look(&page, "vllm:num_requests_running").n_wanted, 1);
    buf_fini(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_engine_says_what_its_model_does),
        cmocka_unit_test(test_names_of_other_versions_are_not_there),
        cmocka_unit_test(test_ranks_that_share_a_line_add_up),
        cmocka_unit_test(test_a_page_is_as_long_as_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
