/* The families of `metrics:` entries: their names, and one number each. What the number is was decided elsewhere. */
#include "exporter/page.h"

#include <stdio.h>
#include <string.h>

/* What the page's own families begin with, now and later: a configuration that is right today stays right. */
static const char *const reserved[] = {"keda_gpu_scaler_", "grpc_server_", "process_", "dcgm_", "scrape_"};

int exporter_name_entry(const char *entry, char ret_name[EXPORTER_NAME_MAX], struct err *e)
{
    char name[EXPORTER_NAME_MAX];
    bool starts_with_digit = *entry >= '0' && *entry <= '9';
    (void)snprintf(name, sizeof(name), "%s%s", starts_with_digit ? "_" : "", entry);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *c))
            *c = '_';
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (str_has_prefix(str_of(name), reserved[i]))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "name \"%s\" is not allowed: it is a family on /metrics, where names that begin with %s are "
                           "the program's own",
                           entry, reserved[i]);
    if (strcmp(name, "up") == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "name \"%s\" is not allowed: Prometheus has a metric of that name",
                       entry);
    memcpy(ret_name, name, sizeof(name));
    return 0;
}

void entries_render(struct page *page)
{
    for (size_t i = 0; i < page->view.n_entries; i++) {
        const struct exporter_entry *entry = &page->view.entries[i];
        const struct promtext_family family = {.name = entry->name, .help = entry->help, .type = PROMTEXT_GAUGE};
        const struct promtext_label label = {"node", entry->node};
        if (i == 0 || strcmp(entry[-1].name, entry->name) != 0)
            promtext_begin(&page->text, &family);
        promtext_sample(&page->text, &label, entry->node != NULL, entry->value);
    }
}
