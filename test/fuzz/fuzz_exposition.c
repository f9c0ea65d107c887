/* The exposition reader on any bytes: views stay inside the page, and counts add up. */
#include "promtext/promtext.h"

static void on_sample(void *context, const struct promtext_read_sample *sample)
{
    size_t *bytes = context;
    *bytes += sample->name.len;
    for (size_t i = 0; i < sample->n_labels; i++)
        for (size_t k = 0; k < sample->labels[i].value.len; k++)
            *bytes += sample->labels[i].value.ptr[k] != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes = 0, bad = 0;
    struct err e;
    (void)promtext_read((struct str){(const char *)data, size}, on_sample, &bytes, &bad, &e);
    if (bytes > size || bad > size)
        abort();
    return 0;
}
