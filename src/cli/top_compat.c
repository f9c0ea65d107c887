/* The forms of gpu-metrics: the keys, columns and whole numbers that its users' parsers know, with null and empty for
 * what is not known. One row a GPU, or one a MIG device instead of its GPU, with the board's readings of that GPU. */
#include "cli/table.h"
#include "cli/top.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The numbers of a row, in order. Change procedure: keys and columns are those of contracts with other programs and do
 * not change; docs/top.md and test/unit/cli/test_compat.c list them. */
static const struct {
    const char *key, *column;
    enum top_value value;
    double divisor;
    bool is_board; /* of a MIG device: what its GPU reads */
} numbers[] = {
    {"GPUUtilization", "gpu_util_pct", TOP_UTILIZATION, 1, false},
    {"MemoryUtilization", "mem_util_pct", TOP_MEMORY_UTILIZATION, 1, false},
    {"MemoryUsedMiB", "mem_used_mib", TOP_MEMORY_USED, 1 << 20, false},
    {"MemoryTotalMiB", "mem_total_mib", TOP_MEMORY_TOTAL, 1 << 20, false},
    {"TemperatureCelsius", "temp_c", TOP_TEMPERATURE, 1, true},
    {"PowerDrawWatts", "power_w", TOP_POWER, 1, true},
    {"PowerLimitWatts", "power_limit_w", TOP_POWER_LIMIT, 1, true},
    {"PCIeTxKBps", "pcie_tx_kbps", TOP_PCIE_TX, 1e3, true},
    {"PCIeRxKBps", "pcie_rx_kbps", TOP_PCIE_RX, 1e3, true},
    {"NVLinkTxMBps", "nvlink_tx_mbps", TOP_NVLINK_TX, 1e6, true},
    {"NVLinkRxMBps", "nvlink_rx_mbps", TOP_NVLINK_RX, 1e6, true},
};

struct row {
    const struct top_device *device, *board; /* board: itself, or the GPU of a MIG device; NULL when it is not there */
    int index;                               /* of a MIG device: which one of its GPU */
};

/* The row of device i; false for a divided GPU, which its MIG devices stand for. Without any it stands for itself. */
static bool row_of(const struct top_sample *sample, size_t i, struct row *ret)
{
    const struct top_device *devices = sample->devices.items, *d = &devices[i];
    bool has_instances = i + 1 < sample->devices.len && devices[i + 1].kind == SNAPSHOT_MIG &&
                         strcmp(devices[i + 1].parent_uuid, d->uuid) == 0;
    *ret = (struct row){.device = d, .board = d, .index = d->index};
    if (d->kind != SNAPSHOT_MIG)
        return !has_instances;
    ret->index = 0;
    while (i > 0 && devices[i - 1].kind == SNAPSHOT_MIG && strcmp(devices[i - 1].parent_uuid, d->parent_uuid) == 0) {
        ret->index++;
        i--;
    }
    bool has_board = i > 0 && strcmp(devices[i - 1].uuid, d->parent_uuid) == 0;
    ret->board = has_board ? &devices[i - 1] : NULL;
    return true;
}

/* NaN unknown. The driver gives no utilisation of MIG devices: the activity of their compute engines is the nearest. */
static double value_of(const struct row *row, enum top_value value, bool is_board)
{
    const struct top_device *d = is_board ? row->board : row->device;
    if (!d)
        return (double)NAN;
    if (value == TOP_UTILIZATION && d->kind == SNAPSHOT_MIG && isnan(d->values[value]))
        return d->values[TOP_GRAPHICS_ACTIVITY];
    return d->values[value];
}

static void kv_whole(struct json *j, const char *key, double value)
{
    json_key(j, key);
    if (isfinite(value))
        json_i64(j, llround(value));
    else
        json_null(j);
}

static void render_row(const struct row *row, struct json *j)
{
    const struct top_device *d = row->device;
    bool is_mig = d->kind == SNAPSHOT_MIG;
    json_object_begin(j);
    kv_whole(j, "Index", row->index < 0 ? (double)NAN : row->index);
    json_kv_string(j, "UUID", d->uuid);
    json_kv_string(j, "Name", *d->name ? d->name : NULL);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        kv_whole(j, numbers[i].key, value_of(row, numbers[i].value, numbers[i].is_board) / numbers[i].divisor);
    json_kv_bool(j, "IsMIGInstance", is_mig);
    kv_whole(j, "ParentIndex", is_mig && d->index >= 0 ? d->index : (double)NAN);
    json_kv_string(j, "MigProfile", *d->mig_profile ? d->mig_profile : NULL);
    json_object_end(j);
}

static const char *collected_at(const struct top_sample *sample, char out[TIME_RFC3339_MAX])
{
    if (!sample->collected_ns)
        return NULL;
    time_format_rfc3339(out, sample->collected_ns);
    return out;
}

void top_render_compat_json(const struct top_sample *sample, const struct job_plan *plan, int indent, struct buf *out)
{
    struct json j;
    struct row row;
    char time[TIME_RFC3339_MAX];
    json_init(&j, out, indent);
    json_object_begin(&j);
    json_key(&j, "environment");
    top_render_environment(plan, &j);
    json_kv_string(&j, "driver_version", *sample->driver_version ? sample->driver_version : NULL);
    json_kv_string(&j, "collected_at", collected_at(sample, time));
    json_key(&j, "devices");
    json_array_begin(&j);
    for (size_t i = 0; i < sample->devices.len; i++)
        if (row_of(sample, i, &row))
            render_row(&row, &j);
    json_array_end(&j);
    json_object_end(&j);
    (void)buf_append_char(out, '\n');
}

void top_render_compat_csv_header(struct buf *out)
{
    (void)buf_append_str(out, "orchestrator,node,job_id,task_rank,driver_version,index,uuid,name");
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        (void)buf_printf(out, ",%s", numbers[i].column);
    (void)buf_append_str(out, ",is_mig_instance,parent_index,mig_profile\n");
}

static void csv_whole(struct buf *out, double value)
{
    (void)buf_append_char(out, ',');
    if (isfinite(value))
        (void)buf_printf(out, "%lld", llround(value));
}

static void csv_texts(struct buf *out, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)buf_append_char(out, ',');
        top_csv_text(out, texts[i]);
    }
}

void top_render_compat_csv(const struct top_sample *sample, const struct job_plan *plan, struct buf *out)
{
    struct row row;
    for (size_t i = 0; i < sample->devices.len; i++) {
        if (!row_of(sample, i, &row))
            continue;
        const struct top_device *d = row.device;
        const char *const job[] = {plan->node, plan->job_id}, *const names[] = {d->uuid, d->name},
                          *const driver[] = {sample->driver_version}, *const profile[] = {d->mig_profile};
        bool is_mig = d->kind == SNAPSHOT_MIG;
        (void)buf_append_str(out, job_environment_name(plan->environment));
        csv_texts(out, job, ARRAY_LEN(job));
        csv_whole(out, plan->task_rank < 0 ? (double)NAN : (double)plan->task_rank);
        csv_texts(out, driver, ARRAY_LEN(driver));
        csv_whole(out, row.index < 0 ? (double)NAN : row.index);
        csv_texts(out, names, ARRAY_LEN(names));
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
            csv_whole(out, value_of(&row, numbers[k].value, numbers[k].is_board) / numbers[k].divisor);
        (void)buf_append_str(out, is_mig ? ",true" : ",false");
        csv_whole(out, is_mig && d->index >= 0 ? d->index : (double)NAN);
        csv_texts(out, profile, ARRAY_LEN(profile));
        (void)buf_append_char(out, '\n');
    }
}

/* ---- the table ---- */

static const struct {
    const char *header;
    enum top_value value;
    bool is_board;
} columns[] = {
    {"UTIL", TOP_UTILIZATION, false},     {"MEM-UTIL", TOP_MEMORY_UTILIZATION, false},
    {"MEM-USED", TOP_MEMORY_USED, false}, {"MEM-TOTAL", TOP_MEMORY_TOTAL, false},
    {"TEMP", TOP_TEMPERATURE, true},      {"POWER", TOP_POWER, true},
    {"LIMIT", TOP_POWER_LIMIT, true},     {"PCIE-TX", TOP_PCIE_TX, true},
    {"PCIE-RX", TOP_PCIE_RX, true},       {"NVLINK-TX", TOP_NVLINK_TX, true},
    {"NVLINK-RX", TOP_NVLINK_RX, true},
};

static void render_banner(const struct top_sample *sample, const struct job_plan *plan, struct buf *out)
{
    const struct {
        const char *name, *text;
    } parts[] = {{"Node", plan->node},    {"Job", plan->job_id},          {"Pod", plan->pod},
                 {"Namespace", plan->ns}, {"Partition", plan->partition}, {"Driver", sample->driver_version}};
    (void)buf_printf(out, "Environment : %s", job_environment_name(plan->environment));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (*parts[i].text)
            (void)buf_printf(out, "  |  %s: %s", parts[i].name, parts[i].text);
        if (i == 1 && plan->task_rank >= 0)
            (void)buf_printf(out, "  |  Rank: %lld", (long long)plan->task_rank);
    }
    (void)buf_append_str(out, "\n\n");
}

static void add_row(struct table *t, const struct row *row)
{
    char cell[64];
    top_format_index(cell, sizeof(cell), row->device);
    table_cell(t, cell, false);
    bool is_mig = row->device->kind == SNAPSHOT_MIG && *row->device->mig_profile;
    (void)snprintf(cell, sizeof(cell), "MIG %s", row->device->mig_profile);
    table_cell(t, is_mig ? cell : row->device->name, false);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        top_format_value(cell, sizeof(cell), columns[i].value, value_of(row, columns[i].value, columns[i].is_board));
        table_cell(t, cell, true);
    }
    table_end_row(t);
}

void top_render_compat_table(const struct top_sample *sample, const struct job_plan *plan, struct buf *out)
{
    struct table t = {0};
    struct row row;
    render_banner(sample, plan, out);
    table_cell(&t, "GPU", false);
    table_cell(&t, "NAME", false);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        table_cell(&t, columns[i].header, true);
    table_end_row(&t);
    for (size_t i = 0; i < sample->devices.len; i++)
        if (row_of(sample, i, &row))
            add_row(&t, &row);
    for (size_t i = 0; i < table_row_count(&t); i++) {
        table_render_row(&t, i, out);
        (void)buf_append_char(out, '\n');
    }
    table_fini(&t);
}
