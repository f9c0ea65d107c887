/* The page: build info, driver and sampler, devices field by field, Xids, process, then what other modules registered.
 */
#include "exporter/exporter.h"

#include "exporter/page.h"
#include "exporter/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exporter {
    struct exporter_config config;
    int64_t wall_offset_ns; /* wall clock less monotonic; 0 unknown */
    size_t last_bytes;      /* of the last page: the next one is hardly larger */
    struct buf labels;      /* of the page in the making, as devices */
    struct page_device devices[SNAPSHOT_DEVICES_MAX];
};
enum { LABELS_MAX = 8 << 20, SPARE_BYTES = 4096 };

struct exporter *exporter_new(const struct exporter_config *config)
{
    struct exporter *x = mem_new(struct exporter);
    x->config = *config;
    buf_init(&x->labels, LABELS_MAX);
    return x;
}

void exporter_free(struct exporter *x)
{
    if (x)
        buf_fini(&x->labels);
    free(x);
}

/* One family of device readings. Change procedure: docs/metrics.md and the golden page change with it. */
struct device_family {
    enum snapshot_field field;
    double divisor; /* to the unit in the name: percent -> ratio is 100 */
    struct promtext_family family;
};
#define P "keda_gpu_scaler_gpu_"
#define ROW(field_, divisor_, name_, type_, unit_, help_)                                                              \
    {                                                                                                                  \
        .field = SNAPSHOT_##field_, .divisor = (divisor_), .family = {                                                 \
            .name = P name_,                                                                                           \
            .help = (help_),                                                                                           \
            .unit = (unit_),                                                                                           \
            .type = PROMTEXT_##type_                                                                                   \
        }                                                                                                              \
    }
static const struct device_family device_families[] = {
    ROW(UTILIZATION, 100, "utilization_ratio", GAUGE, "ratio", "Share of time in which any kernel ran."),
    ROW(MEMORY_UTILIZATION, 100, "memory_utilization_ratio", GAUGE, "ratio",
        "Share of time in which device memory was read or written."),
    ROW(MEMORY_USED, 1, "memory_used_bytes", GAUGE, "bytes",
        "Device memory in use, without the driver's reserve where the driver tells them apart."),
    ROW(MEMORY_FREE, 1, "memory_free_bytes", GAUGE, "bytes", "Device memory free."),
    ROW(MEMORY_RESERVED, 1, "memory_reserved_bytes", GAUGE, "bytes", "Device memory reserved by driver and firmware."),
    ROW(MEMORY_TOTAL, 1, "memory_total_bytes", GAUGE, "bytes", "Device memory in all."),
    ROW(TEMPERATURE, 1, "temperature_celsius", GAUGE, "celsius", "Temperature of the GPU die."),
    ROW(MEMORY_TEMPERATURE, 1, "memory_temperature_celsius", GAUGE, "celsius", "Temperature of the device memory."),
    ROW(POWER, 1, "power_watts", GAUGE, "watts", "Power draw of the board."),
    ROW(POWER_LIMIT, 1, "power_limit_watts", GAUGE, "watts", "Power limit in force."),
    ROW(ENERGY, 1, "energy_joules", COUNTER, "joules", "Energy used since the driver was loaded."),
    ROW(SM_CLOCK, 1, "sm_clock_hertz", GAUGE, "hertz", "Clock of the streaming multiprocessors."),
    ROW(MEMORY_CLOCK, 1, "memory_clock_hertz", GAUGE, "hertz", "Clock of the device memory."),
    ROW(PCIE_TX, 1, "pcie_transmit_bytes_per_second", GAUGE, NULL, "PCIe traffic that leaves the GPU."),
    ROW(PCIE_RX, 1, "pcie_receive_bytes_per_second", GAUGE, NULL, "PCIe traffic that reaches the GPU."),
    ROW(PCIE_REPLAYS, 1, "pcie_replays", COUNTER, NULL, "PCIe replays."),
    ROW(NVLINK_BYTES, 1, "nvlink_bytes", COUNTER, "bytes",
        "NVLink data of both directions and all links since the driver was loaded."),
    ROW(PCIE_LINK_GENERATION, 1, "pcie_link_generation", GAUGE, NULL,
        "PCIe generation of the link now; falls when idle."),
    ROW(PCIE_LINK_WIDTH, 1, "pcie_link_lanes", GAUGE, NULL, "PCIe lanes of the link now."),
    ROW(NVLINK_TX, 1, "nvlink_transmit_bytes_per_second", GAUGE, NULL, "NVLink data that leaves the GPU, all links."),
    ROW(NVLINK_RX, 1, "nvlink_receive_bytes_per_second", GAUGE, NULL, "NVLink data that reaches the GPU, all links."),
    ROW(ENCODER_UTILIZATION, 100, "encoder_utilization_ratio", GAUGE, "ratio", "Utilization of the video encoders."),
    ROW(DECODER_UTILIZATION, 100, "decoder_utilization_ratio", GAUGE, "ratio", "Utilization of the video decoders."),
    ROW(ECC_CORRECTED, 1, "ecc_corrected_errors", COUNTER, NULL, "Corrected ECC errors since the driver was loaded."),
    ROW(ECC_UNCORRECTED, 1, "ecc_uncorrected_errors", COUNTER, NULL,
        "Uncorrected ECC errors since the driver was loaded."),
    ROW(REMAPPED_ROWS_CORRECTABLE, 1, "remapped_rows_correctable", GAUGE, NULL,
        "Memory rows remapped for corrected errors."),
    ROW(REMAPPED_ROWS_UNCORRECTABLE, 1, "remapped_rows_uncorrectable", GAUGE, NULL,
        "Memory rows remapped for uncorrected errors."),
    ROW(REMAPPED_ROWS_PENDING, 1, "remapped_rows_pending", GAUGE, NULL, "1 if rows wait for a reset to be remapped."),
    ROW(REMAPPED_ROWS_FAILED, 1, "remapped_rows_failed", GAUGE, NULL, "1 if a remapping failed."),
    ROW(FAN_SPEED, 100, "fan_speed_ratio", GAUGE, "ratio", "Fan speed of its maximum."),
    ROW(RECOVERY_ACTION, 1, "recovery_action", GAUGE, NULL,
        "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain, 4 drain and reset."),
    ROW(GRAPHICS_ACTIVITY, 100, "graphics_activity_ratio", GAUGE, "ratio",
        "Share of time in which the graphics or compute engine was active."),
    ROW(SM_ACTIVITY, 100, "sm_activity_ratio", GAUGE, "ratio", "Share of multiprocessor time with at least one warp."),
    ROW(SM_OCCUPANCY, 100, "sm_occupancy_ratio", GAUGE, "ratio", "Warps resident of the most that could be."),
    ROW(TENSOR_ACTIVITY, 100, "tensor_activity_ratio", GAUGE, "ratio",
        "Share of time in which the tensor cores were active."),
    ROW(DRAM_ACTIVITY, 100, "dram_activity_ratio", GAUGE, "ratio", "Share of time in which device memory moved data."),
};

static void begin(struct page *page, const struct promtext_family *family)
{
    promtext_begin(&page->text, family);
}

static void gauge(struct page *page, const char *name, const char *unit, const char *help, double value)
{
    struct promtext_family family = {.name = name, .help = help, .unit = unit, .type = PROMTEXT_GAUGE};
    begin(page, &family);
    promtext_sample(&page->text, NULL, 0, value);
}

static void counter(struct page *page, const char *name, const char *unit, const char *help, double value)
{
    struct promtext_family family = {.name = name, .help = help, .unit = unit, .type = PROMTEXT_COUNTER};
    begin(page, &family);
    promtext_sample(&page->text, NULL, 0, value);
}

/* A reading may be newer than the turn of the loop that shows it: it is then 0 old. */
static double age_seconds(const struct page *page, int64_t taken_ns)
{
    return page->view.now_ns > taken_ns ? (double)(page->view.now_ns - taken_ns) / (double)NS_PER_S : 0;
}

/* ---- devices ---- */

enum { DEVICE_LABELS = 3 };

/* Every series of a device has its UUID: indexes move when a GPU goes. The profile is for people. */
static void write_labels(struct page *page)
{
    const struct snapshot *s = page->view.snapshot;
    buf_reset(page->labels);
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        char index[16];
        (void)snprintf(index, sizeof(index), "%d", d->index);
        const struct promtext_label labels[DEVICE_LABELS] = {
            {"gpu", index}, {"uuid", d->uuid}, {"mig_profile", d->mig_profile}};
        size_t at = page->labels->len;
        page->devices[i] = (struct page_device){.own = {at, promtext_share(page->labels, labels, DEVICE_LABELS).len}};
    }
}

void page_sample(struct page *page, size_t device, const struct promtext_label *labels, size_t n_labels, double value)
{
    const struct page_span *own = &page->devices[device].own;
    promtext_sample_shared(&page->text, (struct str){page->labels->data + own->at, own->len}, labels, n_labels, value);
}

static void render_field(struct page *page, const struct device_family *row)
{
    begin(page, &row->family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        if (!snapshot_is_fresh(page->view.snapshot, d, row->field, page->view.now_ns))
            continue; /* absent, never 0 */
        page_sample(page, i, NULL, 0, d->readings[row->field].value / row->divisor);
    }
}

static void render_info(struct page *page)
{
    static const struct promtext_family family = {
        .name = "keda_gpu_scaler_gpu", .help = "Identity of each device.", .type = PROMTEXT_INFO};
    static const char *const kinds[] = {"gpu", "mig_parent", "mig"};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        char gi[16] = "", ci[16] = "";
        if (d->kind == SNAPSHOT_MIG) {
            (void)snprintf(gi, sizeof(gi), "%d", d->gpu_instance);
            (void)snprintf(ci, sizeof(ci), "%d", d->compute_instance);
        }
        const struct promtext_label labels[] = {{"kind", kinds[d->kind]},      {"product", d->product},
                                                {"pci_bus_id", d->pci_bus_id}, {"parent_uuid", d->parent_uuid},
                                                {"gpu_instance", gi},          {"compute_instance", ci},
                                                {"serial", d->serial}};
        page_sample(page, i, labels, ARRAY_LEN(labels), 1);
    }
}

/* Who holds which device. A join on uuid gives device series the names of pods; on a shared device it gives several. */
static void render_owners(struct page *page)
{
    static const struct promtext_family family = {
        .name = P "owner", .help = "Containers that hold each device.", .type = PROMTEXT_INFO};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        size_t n;
        const struct snapshot_holding *h =
            snapshot_owners_of(page->view.owners, page->view.snapshot->devices[i].uuid, &n);
        for (size_t k = 0; k < n; k++) {
            char shares[16] = "";
            if (h[k].is_shared)
                (void)snprintf(shares, sizeof(shares), "%u", h[k].shares);
            const struct promtext_label labels[] = {{"pod_namespace", h[k].ns},
                                                    {"pod_name", h[k].pod},
                                                    {"container_name", h[k].container},
                                                    {"resource", h[k].resource},
                                                    {"sharing", h[k].is_shared ? "shared" : "exclusive"},
                                                    {"shares", shares},
                                                    {"claim_namespace", h[k].claim_ns},
                                                    {"claim_name", h[k].claim}};
            page_sample(page, i, labels, ARRAY_LEN(labels), 1);
        }
    }
}

/* Where the holders come from: an old answer is told by its age, a missing one by the state. */
static void render_owners_source(struct page *page)
{
    static const struct promtext_family state = {.name = "keda_gpu_scaler_owners_state",
                                                 .help = "1 for how the last read of pods and their devices went.",
                                                 .type = PROMTEXT_GAUGE};
    static const struct promtext_family ids = {.name = "keda_gpu_scaler_owners_device_ids",
                                               .help = "Device ids of the last good answer, by what became of them.",
                                               .type = PROMTEXT_GAUGE};
#define X(id, name) SNAPSHOT_OWNERS_##id,
    static const enum snapshot_owners_state states[] = {SNAPSHOT_OWNERS_STATES(X)};
#undef X
    const struct snapshot_owners *owners = page->view.owners;
    begin(page, &state);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct promtext_label label = {"state", snapshot_owners_state_name(states[i])};
        promtext_sample(&page->text, &label, 1, owners->state == states[i]);
    }
    if (owners->taken_ns == 0)
        return;
    gauge(page, "keda_gpu_scaler_owners_age_seconds", "seconds", "Age of the last good answer about pods.",
          age_seconds(page, owners->taken_ns));
    gauge(page, "keda_gpu_scaler_owners_pods", NULL, "Pods that the last good answer listed, with GPUs or without.",
          (double)owners->n_pods);
    const struct {
        const char *name;
        size_t count;
    } rows[] = {{"matched", owners->n_matched},
                {"unmatched", owners->n_unmatched},
                {"superseded", owners->n_superseded},
                {"dropped", owners->n_dropped}};
    begin(page, &ids);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct promtext_label label = {"match", rows[i].name};
        promtext_sample(&page->text, &label, 1, (double)rows[i].count);
    }
}

/* Does the driver answer? What the last snapshot says of it is worth nothing when no newer one comes. */
static bool is_driver_up(const struct page *page)
{
    const struct snapshot *s = page->view.snapshot;
    return s->driver == SNAPSHOT_DRIVER_OK && snapshot_stuck_ns(s, page->view.now_ns) == 0;
}

/* Without the driver nobody knows of a device whether it would answer: no series then, unless it was lost before. */
static void render_up(struct page *page)
{
    static const struct promtext_family family = {
        .name = P "up", .help = "1 if the device answers, 0 if it is lost.", .type = PROMTEXT_GAUGE};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        if (!page->view.snapshot->devices[i].is_lost && !is_driver_up(page))
            continue;
        page_sample(page, i, NULL, 0, !page->view.snapshot->devices[i].is_lost);
    }
}

/* Age of the newest reading of each device, whichever field it is of. */
static void render_age(struct page *page)
{
    static const struct promtext_family family = {.name = P "reading_age_seconds",
                                                  .help = "Age of the newest reading.",
                                                  .unit = "seconds",
                                                  .type = PROMTEXT_GAUGE};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        int64_t newest = 0;
        for (size_t f = 0; f < SNAPSHOT_FIELD_COUNT; f++)
            newest = d->readings[f].taken_ns > newest ? d->readings[f].taken_ns : newest;
        if (newest)
            page_sample(page, i, NULL, 0, age_seconds(page, newest));
    }
}

/* Moments of the monotonic clock as times of day. The difference of the two clocks is kept while it hardly moves, so
 * that the time of an event does not change from scrape to scrape, and taken anew when the time of day is set. */
static void keep_wall_offset(struct exporter *x, const struct exporter_view *view)
{
    int64_t offset_ns = view->wall_ns - view->now_ns;
    if (view->wall_ns == 0)
        x->wall_offset_ns = 0;
    else if (x->wall_offset_ns == 0 || llabs(offset_ns - x->wall_offset_ns) > NS_PER_S)
        x->wall_offset_ns = offset_ns;
}

enum xid_value { XID_COUNT, XID_TIME };

static void render_xids(struct page *page, const struct promtext_family *family, enum xid_value which,
                        int64_t wall_offset_ns)
{
    begin(page, family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        for (size_t k = 0; k < d->n_xids; k++) {
            char xid[16];
            const struct promtext_label label = {"xid", xid};
            (void)snprintf(xid, sizeof(xid), "%u", d->xids[k].xid);
            int64_t wall_ms = (d->xids[k].last_ns + wall_offset_ns) / NS_PER_MS;
            page_sample(page, i, &label, 1, which == XID_COUNT ? (double)d->xids[k].count : (double)wall_ms / 1000);
        }
    }
}

/* An event is told by when it was: a gauge of the last one would never clear, and a rate misses the first of a series
 * (dcgm-exporter #190; nvidia_gpu_exporter's rule). */
static void render_xid_families(struct page *page, int64_t wall_offset_ns)
{
    static const struct promtext_family count = {
        .name = P "xid_errors", .help = "Xid events seen since the agent started, by code.", .type = PROMTEXT_COUNTER};
    static const struct promtext_family last = {.name = P "xid_last_timestamp_seconds",
                                                .help = "When the last Xid event of the code was seen.",
                                                .unit = "seconds",
                                                .type = PROMTEXT_GAUGE};
    render_xids(page, &count, XID_COUNT, 0);
    if (wall_offset_ns)
        render_xids(page, &last, XID_TIME, wall_offset_ns);
}

/* For how long clocks were held down, by reason: counters that the driver keeps. */
static void render_throttled_time(struct page *page)
{
    static const struct promtext_family family = {.name = P "throttled_seconds",
                                                  .help = "Time for which clocks were held down for this reason.",
                                                  .unit = "seconds",
                                                  .type = PROMTEXT_COUNTER};
    static const struct {
        enum snapshot_field field;
        const char *reason;
    } rows[] = {{SNAPSHOT_VIOLATION_POWER, "power"},
                {SNAPSHOT_VIOLATION_THERMAL, "thermal"},
                {SNAPSHOT_VIOLATION_SYNC_BOOST, "sync_boost"},
                {SNAPSHOT_VIOLATION_BOARD_LIMIT, "board_limit"},
                {SNAPSHOT_VIOLATION_LOW_UTILIZATION, "low_utilization"},
                {SNAPSHOT_VIOLATION_RELIABILITY, "reliability"}};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
            if (!snapshot_is_fresh(page->view.snapshot, d, rows[r].field, page->view.now_ns))
                continue;
            const struct promtext_label label = {"reason", rows[r].reason};
            page_sample(page, i, &label, 1, d->readings[rows[r].field].value);
        }
    }
}

/* Each reason that the driver names is one series, 1 while it throttles. Idle is no throttling and left out. */
static void render_throttling(struct page *page)
{
    static const struct promtext_family family = {
        .name = P "throttled", .help = "1 while clocks are held down for this reason.", .type = PROMTEXT_GAUGE};
    static const struct {
        uint64_t bit;
        const char *name;
    } reasons[] = {{0x4, "sw_power_cap"},      {0x8, "hw_slowdown"},    {0x10, "sync_boost"},
                   {0x20, "sw_thermal"},       {0x40, "hw_thermal"},    {0x80, "hw_power_brake"},
                   {0x2, "application_clock"}, {0x100, "display_clock"}};
    begin(page, &family);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        const struct snapshot_device *d = &page->view.snapshot->devices[i];
        if (!snapshot_is_fresh(page->view.snapshot, d, SNAPSHOT_THROTTLE_REASONS, page->view.now_ns))
            continue;
        uint64_t bits = (uint64_t)d->readings[SNAPSHOT_THROTTLE_REASONS].value;
        for (size_t r = 0; r < ARRAY_LEN(reasons); r++) {
            const struct promtext_label label = {"reason", reasons[r].name};
            page_sample(page, i, &label, 1, (bits & reasons[r].bit) != 0);
        }
    }
}

/* ---- driver and sampler ---- */

static void render_driver(struct page *page)
{
    const struct snapshot *s = page->view.snapshot;
    static const struct promtext_family state = {
        .name = "keda_gpu_scaler_nvml_state", .help = "1 for the state that the driver is in.", .type = PROMTEXT_GAUGE};
    static const struct promtext_family info = {
        .name = "keda_gpu_scaler_nvml", .help = "Versions of driver and library.", .type = PROMTEXT_INFO};
#define X(id, name) #id,
    static const char *const ids[] = {SNAPSHOT_DRIVER_STATES(X)};
#undef X
    gauge(page, "keda_gpu_scaler_nvml_up", NULL, "1 if the driver answers.", is_driver_up(page));
    begin(page, &state);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct promtext_label label = {"state", snapshot_driver_state_name((enum snapshot_driver_state)i)};
        promtext_sample(&page->text, &label, 1, (size_t)s->driver == i);
    }
    begin(page, &info);
    struct promtext_label labels[] = {
        {"driver_version", s->driver_version}, {"nvml_version", s->nvml_version}, {"library", s->library_path}};
    promtext_sample(&page->text, labels, ARRAY_LEN(labels), 1);
}

static void render_sampler(struct page *page)
{
    const struct snapshot *s = page->view.snapshot;
    static const struct promtext_family errors = {
        .name = "keda_gpu_scaler_nvml_errors", .help = "Failed NVML calls by return code.", .type = PROMTEXT_COUNTER};
    gauge(page, "keda_gpu_scaler_snapshot_age_seconds", "seconds", "Age of the newest snapshot.",
          age_seconds(page, s->taken_ns));
    counter(page, "keda_gpu_scaler_samples", NULL, "Sampling cycles finished.", (double)s->sampler.cycles);
    gauge(page, "keda_gpu_scaler_sample_duration_seconds", "seconds", "Duration of the last sampling cycle.",
          s->sampler.last_cycle_seconds);
    gauge(page, "keda_gpu_scaler_sample_duration_max_seconds", "seconds", "Longest sampling cycle so far.",
          s->sampler.max_cycle_seconds);
    counter(page, "keda_gpu_scaler_nvml_calls", NULL, "NVML calls made.", (double)s->sampler.nvml_calls);
    counter(page, "keda_gpu_scaler_nvml_reinits", NULL, "Times that NVML was opened again.",
            (double)s->sampler.reinits);
    begin(page, &errors);
    for (size_t i = 0; i < s->sampler.n_error_codes; i++) {
        char code[16];
        (void)snprintf(code, sizeof(code), "%d", s->sampler.errors_by_code[i].code);
        struct promtext_label label = {"code", code};
        promtext_sample(&page->text, &label, 1, (double)s->sampler.errors_by_code[i].count);
    }
    gauge(page, "keda_gpu_scaler_devices", NULL, "Devices in the newest snapshot, MIG devices included.",
          (double)s->n_devices);
}

/* ---- process and build ---- */

static void render_build(struct page *page)
{
    static const struct promtext_family family = {.name = "keda_gpu_scaler_build",
                                                  .help = "Version of this program and the node that it runs on.",
                                                  .type = PROMTEXT_INFO};
    begin(page, &family);
    struct promtext_label labels[] = {{"version", page->config->version}, {"node_name", page->config->node_name}};
    promtext_sample(&page->text, labels, ARRAY_LEN(labels), 1);
}

static void render_process(struct page *page)
{
    struct process_stats p;
    process_read(&p);
    gauge(page, "process_start_time_seconds", "seconds", "Start time of the process since the Unix epoch.",
          (double)page->config->start_wall_ns / (double)NS_PER_S);
    counter(page, "process_cpu_seconds", "seconds", "User and system CPU time.", p.cpu_seconds);
    gauge(page, "process_resident_memory_bytes", "bytes", "Resident memory.", p.resident_bytes);
    gauge(page, "process_virtual_memory_bytes", "bytes", "Virtual memory.", p.virtual_bytes);
    gauge(page, "process_open_fds", NULL, "Open file descriptors.", p.open_fds);
    gauge(page, "process_max_fds", NULL, "Most file descriptors that may be open.", p.max_fds);
}

/* ---- what other modules registered ---- */

struct visit {
    struct page *page;
    struct promtext_family family;
};

static void visit_family(void *context, const struct metric_desc *desc)
{
    static const enum promtext_type types[] = {PROMTEXT_COUNTER, PROMTEXT_GAUGE, PROMTEXT_HISTOGRAM};
    struct visit *v = context;
    v->family =
        (struct promtext_family){.name = desc->name, .help = desc->help, .unit = desc->unit, .type = types[desc->kind]};
    begin(v->page, &v->family);
}

static void visit_sample(void *context, const struct metric_sample *sample)
{
    struct visit *v = context;
    struct promtext_label labels[METRIC_LABELS_MAX];
    size_t n = 0;
    for (; n < METRIC_LABELS_MAX && sample->desc->labels[n]; n++)
        labels[n] = (struct promtext_label){sample->desc->labels[n], sample->label_values[n]};
    if (sample->desc->kind != METRIC_HISTOGRAM) {
        promtext_sample(&v->page->text, labels, n, sample->value);
        return;
    }
    struct promtext_histogram h = {.bounds = sample->bounds,
                                   .cumulative = sample->bucket_counts,
                                   .n_bounds = sample->desc->n_bounds,
                                   .sum = sample->sum,
                                   .count = sample->count};
    promtext_histogram(&v->page->text, labels, n, &h);
}

/* From here on the page has its labels and knows whose holders are whose. */
static void prepare(struct page *page)
{
    write_labels(page);
    if (page->config->has_dcgm)
        dcgm_prepare(page);
    if (page->view.holders)
        pods_prepare(page);
}

static void render_snapshot(struct page *page, int64_t wall_offset_ns)
{
    prepare(page);
    render_driver(page);
    render_sampler(page);
    render_info(page);
    render_owners(page);
    render_up(page);
    render_age(page);
    for (size_t i = 0; i < ARRAY_LEN(device_families); i++)
        render_field(page, &device_families[i]);
    render_throttling(page);
    render_throttled_time(page);
    render_xid_families(page, wall_offset_ns);
    if (page->view.holders)
        pods_render(page);
    if (page->config->has_dcgm)
        dcgm_render(page);
}

void exporter_render(struct exporter *x, const struct exporter_view *view, enum promtext_format format, struct buf *out)
{
    struct page page = {.view = *view, .config = &x->config, .devices = x->devices, .labels = &x->labels};
    size_t before = out->len;
    keep_wall_offset(x, view);
    (void)buf_reserve(out, x->last_bytes);
    promtext_init(&page.text, out, format);
    render_build(&page);
    if (view->snapshot)
        render_snapshot(&page, x->wall_offset_ns);
    if (view->owners)
        render_owners_source(&page);
    entries_render(&page);
    render_process(&page);
    struct visit visit = {.page = &page};
    struct metric_visitor visitor = {.family = visit_family, .sample = visit_sample, .context = &visit};
    metrics_visit(x->config.metrics, &visitor);
    promtext_end(&page.text);
    x->last_bytes = out->len - before + SPARE_BYTES;
}
