/* The reader of an agent's page and the forms of what it read, and check's readers of the kernel's files, on any
 * bytes. */
#include "cli/check.h"
#include "cli/top.h"

static void render(const struct top_sample *sample, struct str page)
{
    struct buf out BUF_AUTO;
    buf_init(&out, 64 << 20);
    top_render_table(sample, TOP_VIEW_WIDE, true, &out);
    top_render_json(sample, NULL, 0, &out);
    top_render_csv(sample, &out);
    struct job_plan plan = {.task_rank = -1};
    top_render_compat_json(sample, &plan, 0, &out);
    top_render_compat_csv(sample, &plan, &out);
    top_render_compat_table(sample, &plan, &out);
    top_render_prom(page, &out);
    if (out.is_overflowed)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct top_sample sample;
    struct err e;
    if (top_read(text, &sample, &e) == 0)
        render(&sample, text);
    if (sample.devices.len > TOP_DEVICES_MAX)
        abort();
    top_sample_fini(&sample);
    char version[64];
    check_parse_kernel_version(text, version);
    (void)check_is_listening(text, 6000);
    return 0;
}
