/* The page in the making and what its parts share; private to exporter. */
#ifndef EXPORTER_PAGE_H
#define EXPORTER_PAGE_H

#include "exporter/exporter.h"

/* What belongs to one device of the snapshot, for all families: its labels, written once in `labels` of the page, and
 * its holders. */
struct page_span {
    size_t at, len;
};
struct page_device {
    struct page_span own, dcgm; /* labels of our families and of dcgm-exporter's; dcgm is empty unless they are shown */
    struct page_span holders;   /* of holders->holders; none without holders */
};

struct page {
    struct promtext text;
    struct exporter_view view;
    const struct exporter_config *config;
    struct page_device *devices; /* as many as the snapshot has */
    struct buf *labels;          /* text that the spans are of; grows before the first sample only */
};

/* One sample of a device: what identifies it on every series, then the labels. */
void page_sample(struct page *page, size_t device, const struct promtext_label *labels, size_t n_labels, double value);

/* Whose holders are whose; then what each pod does on each device, and what no process accounts for. The view has
 * holders and a snapshot. */
void pods_prepare(struct page *page);
void pods_render(struct page *page);
/* The families that dcgm-exporter gives, under its names, units and labels, as far as NVML measures them: their labels,
 * then the families. The view has a snapshot. */
void dcgm_prepare(struct page *page);
void dcgm_render(struct page *page);
/* What triggers of the configured names would see. */
void entries_render(struct page *page);

#endif
