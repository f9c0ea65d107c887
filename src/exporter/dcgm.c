/* The families of dcgm-exporter: a table of names and the labels as it spells them, so that rules and dashboards that
 * are written for it go on. What differs is on purpose: board values of a divided GPU stand once instead of once an
 * instance (dcgm-exporter #353), and what is unknown is absent instead of 0 or a blank (#460, gpu-monitoring-tools
 * #97). Names are public API of others: a row is never renamed. docs/metrics.md and the golden pages change with the
 * table. */
#include "exporter/page.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Which devices a family is of. A divided GPU has its board's values; memory and activity are its instances': a sum
 * over all series counts nothing twice. */
enum level { BOARD, LOAD };

/* X(name, field, level, type, divisor from our unit to DCGM's, is it a whole number, help) */
#define DCGM_FAMILIES(X)                                                                                               \
    X("DCGM_FI_DEV_SM_CLOCK", SM_CLOCK, BOARD, GAUGE, 1e6, false, "SM clock (in MHz).")                                \
    X("DCGM_FI_DEV_MEM_CLOCK", MEMORY_CLOCK, BOARD, GAUGE, 1e6, false, "Memory clock (in MHz).")                       \
    X("DCGM_FI_DEV_MEMORY_TEMP", MEMORY_TEMPERATURE, BOARD, GAUGE, 1, false, "Memory temperature (in degrees C).")     \
    X("DCGM_FI_DEV_GPU_TEMP", TEMPERATURE, BOARD, GAUGE, 1, false, "GPU temperature (in degrees C).")                  \
    X("DCGM_FI_DEV_POWER_USAGE", POWER, BOARD, GAUGE, 1, false, "Power draw (in W).")                                  \
    X("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", ENERGY, BOARD, BARE_COUNTER, 1e-3, true,                                 \
      "Energy since the driver was loaded (in mJ).")                                                                   \
    X("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", PCIE_REPLAYS, BOARD, BARE_COUNTER, 1, true, "PCIe replays.")                  \
    X("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", NVLINK_BYTES, BOARD, BARE_COUNTER, 1024, true,                             \
      "NVLink data of both directions and all links since the driver was loaded (in KiB).")                            \
    X("DCGM_FI_DEV_POWER_VIOLATION", VIOLATION_POWER, BOARD, BARE_COUNTER, 1e-9, true,                                 \
      "Time for which clocks were held down by power (in ns).")                                                        \
    X("DCGM_FI_DEV_THERMAL_VIOLATION", VIOLATION_THERMAL, BOARD, BARE_COUNTER, 1e-9, true,                             \
      "Time for which clocks were held down by temperature (in ns).")                                                  \
    X("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", VIOLATION_SYNC_BOOST, BOARD, BARE_COUNTER, 1e-9, true,                       \
      "Time for which clocks were held down by the boost group (in ns).")                                              \
    X("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", VIOLATION_BOARD_LIMIT, BOARD, BARE_COUNTER, 1e-9, true,                     \
      "Time for which clocks were held down by a limit of the board (in ns).")                                         \
    X("DCGM_FI_DEV_LOW_UTIL_VIOLATION", VIOLATION_LOW_UTILIZATION, BOARD, BARE_COUNTER, 1e-9, true,                    \
      "Time for which clocks were held down for lack of work (in ns).")                                                \
    X("DCGM_FI_DEV_RELIABILITY_VIOLATION", VIOLATION_RELIABILITY, BOARD, BARE_COUNTER, 1e-9, true,                     \
      "Time for which clocks were held down for reliability (in ns).")                                                 \
    X("DCGM_FI_DEV_GPU_UTIL", UTILIZATION, LOAD, GAUGE, 1, false, "Time in which any kernel ran (in %).")              \
    X("DCGM_FI_DEV_MEM_COPY_UTIL", MEMORY_UTILIZATION, LOAD, GAUGE, 1, false,                                          \
      "Time in which device memory was read or written (in %); not how full it is.")                                   \
    X("DCGM_FI_DEV_ENC_UTIL", ENCODER_UTILIZATION, LOAD, GAUGE, 1, false, "Video encoder utilization (in %).")         \
    X("DCGM_FI_DEV_DEC_UTIL", DECODER_UTILIZATION, LOAD, GAUGE, 1, false, "Video decoder utilization (in %).")         \
    X("DCGM_FI_DEV_FB_TOTAL", MEMORY_TOTAL, LOAD, GAUGE, 1048576, false, "Device memory in all (in MiB).")             \
    X("DCGM_FI_DEV_FB_FREE", MEMORY_FREE, LOAD, GAUGE, 1048576, false, "Device memory free (in MiB).")                 \
    X("DCGM_FI_DEV_FB_USED", MEMORY_USED, LOAD, GAUGE, 1048576, false,                                                 \
      "Device memory used, without the reserve where the driver tells them apart (in MiB).")                           \
    X("DCGM_FI_DEV_FB_RESERVED", MEMORY_RESERVED, LOAD, GAUGE, 1048576, false,                                         \
      "Device memory that driver and firmware keep (in MiB).")                                                         \
    X("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ECC_CORRECTED, BOARD, BARE_COUNTER, 1, true,                                    \
      "Corrected ECC errors since the driver was loaded.")                                                             \
    X("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", ECC_UNCORRECTED, BOARD, BARE_COUNTER, 1, true,                                  \
      "Uncorrected ECC errors since the driver was loaded.")                                                           \
    X("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", REMAPPED_ROWS_UNCORRECTABLE, BOARD, BARE_COUNTER, 1, true,            \
      "Memory rows remapped for uncorrected errors.")                                                                  \
    X("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", REMAPPED_ROWS_CORRECTABLE, BOARD, BARE_COUNTER, 1, true,                \
      "Memory rows remapped for corrected errors.")                                                                    \
    X("DCGM_FI_DEV_ROW_REMAP_FAILURE", REMAPPED_ROWS_FAILED, BOARD, GAUGE, 1, true, "1 if a row remap failed.")        \
    X("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GRAPHICS_ACTIVITY, LOAD, GAUGE, 100, false,                                     \
      "Share of time in which the graphics or compute engine was active.")                                             \
    X("DCGM_FI_PROF_SM_ACTIVE", SM_ACTIVITY, LOAD, GAUGE, 100, false,                                                  \
      "Share of multiprocessor time with at least one warp; of an instance, of its own multiprocessors.")              \
    X("DCGM_FI_PROF_SM_OCCUPANCY", SM_OCCUPANCY, LOAD, GAUGE, 100, false, "Warps resident of the most that could be.") \
    X("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", TENSOR_ACTIVITY, LOAD, GAUGE, 100, false,                                     \
      "Share of time in which the tensor cores were active.")                                                          \
    X("DCGM_FI_PROF_DRAM_ACTIVE", DRAM_ACTIVITY, LOAD, GAUGE, 100, false,                                              \
      "Share of time in which device memory moved data.")                                                              \
    X("DCGM_FI_PROF_PCIE_TX_BYTES", PCIE_TX, BOARD, GAUGE, 1, false,                                                   \
      "PCIe traffic that leaves the GPU (in bytes per second).")                                                       \
    X("DCGM_FI_PROF_PCIE_RX_BYTES", PCIE_RX, BOARD, GAUGE, 1, false,                                                   \
      "PCIe traffic that reaches the GPU (in bytes per second).")                                                      \
    X("DCGM_FI_PROF_NVLINK_TX_BYTES", NVLINK_TX, BOARD, GAUGE, 1, false,                                               \
      "NVLink data that leaves the GPU, all links (in bytes per second).")                                             \
    X("DCGM_FI_PROF_NVLINK_RX_BYTES", NVLINK_RX, BOARD, GAUGE, 1, false,                                               \
      "NVLink data that reaches the GPU, all links (in bytes per second).")

static const struct dcgm_family {
    struct promtext_family family;
    enum snapshot_field field;
    enum level level;
    double divisor;
    bool is_whole; /* what is a count there stays one through our units */
} families[] = {
#define X(name_, field_, level_, type_, divisor_, is_whole_, help_)                                                    \
    {{.name = (name_), .help = (help_), .type = PROMTEXT_##type_},                                                     \
     SNAPSHOT_##field_,                                                                                                \
     (level_),                                                                                                         \
     (divisor_),                                                                                                       \
     (is_whole_)},
    DCGM_FAMILIES(X)
#undef X
};

/* Labels in dcgm-exporter's order. Hostname was renamed to hostname there (#655): both are given. */
enum { LABELS_MAX = 15 };
struct series {
    char gpu[16], device[24], instance[16];
    struct promtext_label labels[LABELS_MAX];
    size_t n_labels;
};

static void add_label(struct series *s, const char *name, const char *value)
{
    assert(s->n_labels < LABELS_MAX);
    s->labels[s->n_labels++] = (struct promtext_label){name, value};
}

/* The GPU instance's profile: "1c.3g.40gb" is a compute instance of a "3g.40gb". */
static const char *instance_profile(const struct snapshot_device *d)
{
    size_t digits = strspn(d->mig_profile, "0123456789");
    bool is_compute = digits > 0 && str_has_prefix(str_of(d->mig_profile + digits), "c.");
    return is_compute ? d->mig_profile + digits + 2 : d->mig_profile;
}

static void label(const struct page *page, const struct snapshot_device *d, struct series *ret)
{
    ret->n_labels = 0;
    (void)snprintf(ret->gpu, sizeof(ret->gpu), "%d", d->index);
    ret->device[0] = '\0';
    if (d->minor >= 0)
        (void)snprintf(ret->device, sizeof(ret->device), "nvidia%d", d->minor);
    add_label(ret, "gpu", ret->gpu);
    add_label(ret, "UUID", d->kind == SNAPSHOT_MIG ? d->parent_uuid : d->uuid);
    add_label(ret, "pci_bus_id", d->pci_bus_id);
    add_label(ret, "device", ret->device);
    add_label(ret, "modelName", d->product);
    if (d->kind == SNAPSHOT_MIG) {
        (void)snprintf(ret->instance, sizeof(ret->instance), "%d", d->gpu_instance);
        add_label(ret, "GPU_I_PROFILE", instance_profile(d));
        add_label(ret, "GPU_I_ID", ret->instance);
    }
    add_label(ret, "Hostname", page->config->node_name);
    add_label(ret, "hostname", page->config->node_name);
    add_label(ret, "DCGM_FI_DRIVER_VERSION", page->view.snapshot->driver_version);
}

static bool is_same_instance(const struct snapshot_device *a, const struct snapshot_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->gpu_instance == b->gpu_instance &&
           strcmp(a->parent_uuid, b->parent_uuid) == 0;
}

/* DCGM's labels name GPU instances: compute instances of one share them. Its memory is theirs in common and stands
 * once; everything else is each one's own, and no one of them is the instance's. */
static bool speaks_for_instance(const struct snapshot *s, size_t i, enum snapshot_field field)
{
    const struct snapshot_device *d = &s->devices[i];
    bool is_first = i == 0 || !is_same_instance(&s->devices[i - 1], d);
    bool is_last = i + 1 == s->n_devices || !is_same_instance(d, &s->devices[i + 1]);
    bool is_memory = field == SNAPSHOT_MEMORY_USED || field == SNAPSHOT_MEMORY_FREE ||
                     field == SNAPSHOT_MEMORY_RESERVED || field == SNAPSHOT_MEMORY_TOTAL;
    return is_first && (is_last || is_memory);
}

static bool is_of_level(const struct snapshot_device *d, enum level level)
{
    return d->kind == SNAPSHOT_GPU || (d->kind == SNAPSHOT_MIG) == (level == LOAD);
}

/* The pod of a device that one container holds alone. On a shared one a pod's label would be a lie (dcgm-exporter #201,
 * #340), and a line for each holder would multiply every sum; an instance cut further is shared too. */
static void label_owner(const struct page *page, size_t i, struct series *series)
{
    const struct snapshot *s = page->view.snapshot;
    const struct snapshot_device *d = &s->devices[i];
    size_t n;
    const struct snapshot_holding *h = snapshot_owners_of(page->view.owners, d->uuid, &n);
    if (n != 1 || h->is_shared || !speaks_for_instance(s, i, SNAPSHOT_FIELD_COUNT))
        return;
    add_label(series, "container", h->container);
    add_label(series, "namespace", h->ns);
    add_label(series, "pod", h->pod);
}

void dcgm_prepare(struct page *page)
{
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        struct series series;
        label(page, &page->view.snapshot->devices[i], &series);
        label_owner(page, i, &series);
        size_t at = page->labels->len;
        page->devices[i].dcgm =
            (struct page_span){at, promtext_share(page->labels, series.labels, series.n_labels).len};
    }
}

static void sample(struct page *page, size_t device, const struct promtext_label *labels, size_t n_labels, double value)
{
    const struct page_span *span = &page->devices[device].dcgm;
    promtext_sample_shared(&page->text, (struct str){page->labels->data + span->at, span->len}, labels, n_labels,
                           value);
}

static void render_family(struct page *page, const struct dcgm_family *row)
{
    const struct snapshot *s = page->view.snapshot;
    promtext_begin(&page->text, &row->family);
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        if (!is_of_level(d, row->level) || !snapshot_is_fresh(s, d, row->field, page->view.now_ns) ||
            !speaks_for_instance(s, i, row->field))
            continue;
        double value = d->readings[row->field].value / row->divisor;
        sample(page, i, NULL, 0, row->is_whole ? round(value) : value);
    }
}

/* What the commonest codes mean, for err_msg. */
static const char *xid_text(uint32_t xid)
{
    static const struct {
        uint32_t xid;
        const char *text;
    } rows[] = {
        {13, "graphics engine exception"},
        {31, "GPU memory page fault"},
        {32, "invalid or corrupted push buffer"},
        {43, "GPU stopped processing"},
        {45, "preemptive cleanup after earlier errors"},
        {48, "double bit ECC error"},
        {62, "internal micro-controller halt"},
        {63, "row remapping or page retirement recorded"},
        {64, "row remapping or page retirement failed"},
        {74, "NVLink error"},
        {79, "GPU has fallen off the bus"},
        {92, "high rate of single bit ECC errors"},
        {94, "contained memory error"},
        {95, "uncontained memory error"},
        {119, "GSP RPC timeout"},
        {120, "GSP error"},
        {121, "corrected C2C link error"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].xid == xid)
            return rows[i].text;
    return "unknown";
}

static void take_last_xid(const struct snapshot_device *d, const struct snapshot_xid **last)
{
    for (size_t k = 0; k < d->n_xids; k++)
        if (!*last || d->xids[k].last_ns >= (*last)->last_ns)
            *last = &d->xids[k];
}

/* The last Xid's number, as DCGM has it: it never goes back to 0 (dcgm-exporter #190), and there is no series before
 * the first. A lost GPU keeps it, since it is often the reason. */
static void render_xid(struct page *page)
{
    static const struct promtext_family family = {
        .name = "DCGM_FI_DEV_XID_ERRORS", .help = "Number of the last Xid error seen.", .type = PROMTEXT_GAUGE};
    const struct snapshot *s = page->view.snapshot;
    promtext_begin(&page->text, &family);
    for (size_t i = 0, next; i < s->n_devices; i = next) {
        const struct snapshot_device *d = &s->devices[i];
        const struct snapshot_xid *last = NULL;
        take_last_xid(d, &last);
        for (next = i + 1; next < s->n_devices && is_same_instance(d, &s->devices[next]); next++)
            take_last_xid(&s->devices[next], &last);
        if (!last)
            continue;
        char code[16];
        (void)snprintf(code, sizeof(code), "%u", last->xid);
        const struct promtext_label labels[] = {{"err_code", code}, {"err_msg", xid_text(last->xid)}};
        sample(page, i, labels, ARRAY_LEN(labels), (double)last->xid);
    }
}

void dcgm_render(struct page *page)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        render_family(page, &families[i]);
    render_xid(page);
}
