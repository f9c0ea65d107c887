/* The page in the making and what its parts share; private to exporter. */
#ifndef EXPORTER_PAGE_H
#define EXPORTER_PAGE_H

#include "exporter/exporter.h"

/* The holders of one device: `n` of them from `first` on. */
struct page_run {
    size_t first, n;
};

struct page {
    struct promtext text;
    struct exporter_view view;
    const struct exporter_config *config;
    struct page_run *runs; /* by place in the snapshot's devices; all zero without holders */
};

/* What identifies a device on every series: its UUID, and its index and MIG profile for people. The labels point to
 * *index and to the device. */
enum { PAGE_DEVICE_LABELS = 3 };
struct page_index {
    char text[16];
};
void page_device_labels(const struct snapshot_device *d, struct page_index *index,
                        struct promtext_label labels[PAGE_DEVICE_LABELS]);

/* What each pod does on each device, and what no process accounts for. */
void pods_render(struct page *page);
/* What triggers of the configured names would see. */
void entries_render(struct page *page);

#endif
