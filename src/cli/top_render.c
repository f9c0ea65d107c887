/* The forms of a sample: tables for people, JSON and CSV for programs. Unknown is "-", null and empty, never 0. */
#include "cli/table.h"
#include "cli/top.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum form { PERCENT, BYTES, RATE, CELSIUS, WATTS, HERTZ, JOULES };
enum { TABLE = TOP_VIEW_TABLE, WIDE = TOP_VIEW_WIDE, DATA = TOP_VIEW_DATA };
enum { CELL_MAX = 384 };

static const struct {
    const char *key, *header;
    enum form form;
    int view;
} values[] = {
#define X(id, key, header, family, scale, form, view) {key, header, form, view},
    TOP_VALUES(X)
#undef X
};

static const char *const kinds[] = {"gpu", "mig_parent", "mig"};

/* ---- tables ---- */

static void format_bytes(char *out, size_t size, double value, const char *rest)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, size, "%.*f%s%s", unit ? 1 : 0, value, units[unit], rest);
}

void top_format_value(char *out, size_t size, enum top_value value, double number)
{
    static const char *const units[] = {
        [PERCENT] = "%", [BYTES] = "", [RATE] = "/s", [CELSIUS] = "C", [WATTS] = "W", [HERTZ] = "MHz", [JOULES] = "J"};
    enum form form = values[value].form;
    if (isnan(number))
        (void)snprintf(out, size, "-");
    else if (form == BYTES || form == RATE)
        format_bytes(out, size, number, units[form]);
    else
        (void)snprintf(out, size, "%.0f%s", form == HERTZ ? number / 1e6 : number, units[form]);
}

void top_format_index(char *out, size_t size, const struct top_device *d)
{
    if (d->index < 0)
        (void)snprintf(out, size, "-");
    else if (d->kind == SNAPSHOT_MIG && d->gpu_instance >= 0)
        (void)snprintf(out, size, "%d.%d.%d", d->index, d->gpu_instance, d->compute_instance);
    else
        (void)snprintf(out, size, "%d", d->index);
}

static void add_header(struct table *t, enum top_view view)
{
    table_cell(t, "GPU", false);
    table_cell(t, "NAME", false);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        if (values[i].view <= (int)view)
            table_cell(t, values[i].header, true);
    table_cell(t, "STATUS", false);
    if (view != TOP_VIEW_TABLE) {
        table_cell(t, "BUS-ID", false);
        table_cell(t, "UUID", false);
    }
    table_end_row(t);
}

static void add_device(struct table *t, const struct top_device *d, enum top_view view)
{
    char cell[CELL_MAX];
    bool is_mig = d->kind == SNAPSHOT_MIG && *d->mig_profile;
    top_format_index(cell, sizeof(cell), d);
    table_cell(t, cell, false);
    (void)snprintf(cell, sizeof(cell), "%s%s", is_mig ? "MIG " : "", is_mig ? d->mig_profile : d->name);
    table_cell(t, cell, false);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++) {
        if (values[i].view > (int)view)
            continue;
        top_format_value(cell, sizeof(cell), (enum top_value)i, d->values[i]);
        table_cell(t, cell, true);
    }
    table_cell(t, d->is_lost ? "lost" : "ok", false);
    if (view != TOP_VIEW_TABLE) {
        table_cell(t, d->pci_bus_id, false);
        table_cell(t, d->uuid, false);
    }
    table_end_row(t);
}

static double pod_value(const struct top_pod *pod, size_t value)
{
    return value == TOP_UTILIZATION   ? pod->utilization_percent
           : value == TOP_MEMORY_USED ? pod->memory_used_bytes
                                      : (double)NAN;
}

/* "holds" would be too much to say of a pod that only has processes there. */
static const char *sharing_of(const struct top_pod *pod)
{
    return !pod->is_listed ? "" : pod->is_shared ? "shared" : "exclusive";
}

/* Below its device, set in. */
static void add_pod(struct table *t, const struct top_pod *pod, enum top_view view)
{
    char cell[CELL_MAX];
    table_cell(t, " pod", false);
    if (*pod->name)
        (void)snprintf(cell, sizeof(cell), " %s/%s", pod->ns, pod->name);
    else
        (void)snprintf(cell, sizeof(cell), " %s", *pod->uid ? pod->uid : "(no pod)");
    table_cell(t, cell, false);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++) {
        if (values[i].view > (int)view)
            continue;
        top_format_value(cell, sizeof(cell), (enum top_value)i, pod_value(pod, i));
        table_cell(t, cell, true);
    }
    int len = snprintf(cell, sizeof(cell), "%s", sharing_of(pod));
    if (pod->shares > 1)
        (void)snprintf(cell + len, sizeof(cell) - (size_t)len, " x%d", pod->shares);
    table_cell(t, cell, false);
    if (view != TOP_VIEW_TABLE) {
        table_cell(t, "", false);
        table_cell(t, pod->uid, false);
    }
    table_end_row(t);
}

void top_render_table(const struct top_sample *sample, enum top_view view, bool has_colour, struct buf *out)
{
    struct table t = {0};
    add_header(&t, view);
    for (size_t i = 0; i < sample->devices.len; i++) {
        const struct top_device *d = &sample->devices.items[i];
        add_device(&t, d, view);
        for (size_t k = 0; k < d->pods.len; k++)
            add_pod(&t, &d->pods.items[k], view);
    }
    size_t row = 0;
    table_render_row(&t, row++, out);
    (void)buf_append_char(out, '\n');
    for (size_t i = 0; i < sample->devices.len; i++) {
        bool is_red = has_colour && sample->devices.items[i].is_lost;
        for (size_t k = 0; k <= sample->devices.items[i].pods.len; k++) {
            (void)buf_append_str(out, is_red ? "\033[31m" : "");
            table_render_row(&t, row++, out);
            (void)buf_append_str(out, is_red ? "\033[0m\n" : "\n");
        }
    }
    table_fini(&t);
}

/* ---- JSON ---- */

static void kv_text(struct json *j, const char *key, const char *text)
{
    json_kv_string(j, key, *text ? text : NULL);
}

static void kv_number(struct json *j, const char *key, int number)
{
    json_key(j, key);
    if (number < 0)
        json_null(j);
    else
        json_i64(j, number);
}

static void collected_at(const struct top_sample *sample, char out[TIME_RFC3339_MAX])
{
    out[0] = '\0';
    if (sample->collected_ns)
        time_format_rfc3339(out, sample->collected_ns);
}

static void render_pods(const struct top_device *d, bool has_pods, struct json *j)
{
    json_key(j, "pods");
    if (!has_pods && d->pods.len == 0) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < d->pods.len; i++) {
        const struct top_pod *pod = &d->pods.items[i];
        json_object_begin(j);
        kv_text(j, "namespace", pod->ns);
        kv_text(j, "name", pod->name);
        kv_text(j, "uid", pod->uid);
        kv_text(j, "sharing", sharing_of(pod));
        kv_number(j, "shares", pod->shares ? pod->shares : -1);
        json_kv_double(j, values[TOP_UTILIZATION].key, pod->utilization_percent);
        json_kv_double(j, values[TOP_MEMORY_USED].key, pod->memory_used_bytes);
        json_object_end(j);
    }
    json_array_end(j);
}

static void render_device(const struct top_device *d, bool has_pods, struct json *j)
{
    json_object_begin(j);
    kv_number(j, "index", d->index);
    kv_text(j, "uuid", d->uuid);
    kv_text(j, "name", d->name);
    json_kv_string(j, "kind", kinds[d->kind]);
    kv_text(j, "parent_uuid", d->parent_uuid);
    kv_number(j, "gpu_instance", d->gpu_instance);
    kv_number(j, "compute_instance", d->compute_instance);
    kv_text(j, "mig_profile", d->mig_profile);
    kv_text(j, "pci_bus_id", d->pci_bus_id);
    kv_text(j, "serial", d->serial);
    json_kv_string(j, "status", d->is_lost ? "lost" : "ok");
    json_kv_double(j, "age_seconds", d->age_seconds);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        json_kv_double(j, values[i].key, d->values[i]);
    render_pods(d, has_pods, j);
    json_object_end(j);
}

void top_render_environment(const struct job_plan *plan, struct json *j)
{
    json_object_begin(j);
    json_kv_string(j, "orchestrator", job_environment_name(plan->environment));
    kv_text(j, "node", plan->node);
    kv_text(j, "job_id", plan->job_id);
    json_key(j, "task_rank");
    if (plan->task_rank < 0)
        json_null(j);
    else
        json_i64(j, plan->task_rank);
    kv_text(j, "pod_name", plan->pod);
    kv_text(j, "namespace", plan->ns);
    kv_text(j, "partition", plan->partition);
    kv_text(j, "flux_uri", plan->flux_uri);
    json_object_end(j);
}

void top_render_json(const struct top_sample *sample, const struct job_plan *plan, int indent, struct buf *out)
{
    struct json j;
    char time[TIME_RFC3339_MAX];
    collected_at(sample, time);
    json_init(&j, out, indent);
    json_object_begin(&j);
    json_kv_i64(&j, "schema_version", 1);
    kv_text(&j, "collected_at", time);
    kv_text(&j, "node", sample->node);
    kv_text(&j, "driver_version", sample->driver_version);
    json_kv_string(&j, "driver_state", sample->state);
    json_key(&j, "environment");
    if (plan)
        top_render_environment(plan, &j);
    else
        json_null(&j);
    json_key(&j, "devices");
    json_array_begin(&j);
    for (size_t i = 0; i < sample->devices.len; i++)
        render_device(&sample->devices.items[i], sample->has_pods, &j);
    json_array_end(&j);
    json_object_end(&j);
    (void)buf_append_char(out, '\n');
}

/* ---- CSV ---- */

void top_render_csv_header(struct buf *out)
{
    (void)buf_append_str(out, "collected_at,node,driver_version,index,uuid,name,kind,parent_uuid,gpu_instance,"
                              "compute_instance,mig_profile,pci_bus_id,serial,status,age_seconds");
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        (void)buf_printf(out, ",%s", values[i].key);
    (void)buf_append_str(out, ",pod_namespace,pod_name,pod_uid,pod_sharing,pod_shares\n");
}

/* Quoted where it must be; quotes are doubled. RFC 4180, 2.5 to 2.7 */
void top_csv_text(struct buf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)buf_append_str(out, text);
        return;
    }
    (void)buf_append_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            (void)buf_append_char(out, '"');
        (void)buf_append_char(out, *text);
    }
    (void)buf_append_char(out, '"');
}

static void csv_texts(struct buf *out, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)buf_append_char(out, ',');
        top_csv_text(out, texts[i]);
    }
}

static void csv_number(struct buf *out, double value)
{
    char text[NUM_TEXT_MAX];
    (void)buf_append_char(out, ',');
    if (isnan(value))
        return;
    num_format_double(text, value);
    (void)buf_append_str(out, text);
}

static double or_nan(int number)
{
    return number < 0 ? (double)NAN : number;
}

/* pod NULL: the device's own row; else the pod's, with the device's identity. */
static void csv_row(const struct top_sample *sample, const struct top_device *d, const struct top_pod *pod,
                    struct buf *out)
{
    char time[TIME_RFC3339_MAX];
    collected_at(sample, time);
    const char *const before[] = {sample->node, sample->driver_version};
    const char *const texts[] = {d->uuid, d->name, pod ? "pod" : kinds[d->kind], d->parent_uuid};
    const char *const more[] = {d->mig_profile, d->pci_bus_id, d->serial, d->is_lost ? "lost" : "ok"};
    const char *const last[] = {pod ? pod->ns : "", pod ? pod->name : "", pod ? pod->uid : "",
                                pod ? sharing_of(pod) : ""};
    top_csv_text(out, time);
    csv_texts(out, before, ARRAY_LEN(before));
    csv_number(out, or_nan(d->index));
    csv_texts(out, texts, ARRAY_LEN(texts));
    csv_number(out, or_nan(d->gpu_instance));
    csv_number(out, or_nan(d->compute_instance));
    csv_texts(out, more, ARRAY_LEN(more));
    csv_number(out, d->age_seconds);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        csv_number(out, pod ? pod_value(pod, i) : d->values[i]);
    csv_texts(out, last, ARRAY_LEN(last));
    csv_number(out, pod && pod->shares ? pod->shares : (double)NAN);
    (void)buf_append_char(out, '\n');
}

void top_render_csv(const struct top_sample *sample, struct buf *out)
{
    for (size_t i = 0; i < sample->devices.len; i++) {
        const struct top_device *d = &sample->devices.items[i];
        csv_row(sample, d, NULL, out);
        for (size_t k = 0; k < d->pods.len; k++)
            csv_row(sample, d, &d->pods.items[k], out);
    }
}
