/* What a scrape costs: renders the page of a node with eight GPUs and 32 owners, and compresses the same text with zlib
 * at level 1, in turn; and renders a page a million times, looking at the bytes that are allocated. Prints
 * `render_us zlib_us page_bytes` for each pair, then `growth bytes scrapes`. test/bench/run judges. */
#include "self.h"

#include "exporter/exporter.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#define NOW (3600 * NS_PER_S)
enum { GPUS = 8, PODS_PER_GPU = 4, OWNERS = GPUS * PODS_PER_GPU, PAGE_MAX = 1 << 20 };

/* A node: what the agent would have in hand. */
struct node {
    size_t n_gpus, n_owners;
    struct snapshot *snapshot, *uses;
    struct snapshot_owners *owners;
    struct snapshot_holder holders[OWNERS];
    struct snapshot_holders list;
    char uuids[GPUS][SNAPSHOT_UUID_MAX], names[OWNERS][3][64];
    struct exporter *exporter;
    struct metrics *metrics;
};

/* Values as GPUs have them: few are whole. */
static double value_of(enum snapshot_field field, size_t gpu)
{
    static const double bytes[] = {SNAPSHOT_MEMORY_USED, SNAPSHOT_MEMORY_FREE, SNAPSHOT_MEMORY_RESERVED,
                                   SNAPSHOT_MEMORY_TOTAL};
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
        if ((int)bytes[i] == (int)field)
            return 20e9 + (double)gpu * 1234567680 + (double)i * 4096;
    if (field == SNAPSHOT_ENERGY)
        return 123456789.123 + (double)gpu;
    if (field == SNAPSHOT_POWER)
        return 412.375 + (double)gpu * 3.211;
    if (strcmp(snapshot_field_unit(field), "percent") == 0)
        return (double)(((unsigned)field * 7 + gpu * 13) % 101);
    return strcmp(snapshot_field_unit(field), "bytes_per_second") == 0 ? 1.5e9 + (double)gpu * 1234.56 : (double)gpu;
}

static void make_snapshot(struct node *n)
{
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    struct snapshot *header = snapshot_store_header(store);
    header->driver = SNAPSHOT_DRIVER_OK;
    (void)str_copy(header->driver_version, sizeof(header->driver_version), str_of("570.172.08"));
    for (size_t i = 0; i < n->n_gpus; i++) {
        struct snapshot_device d = {.kind = SNAPSHOT_GPU,
                                    .index = (int)i,
                                    .minor = (int)i,
                                    .gpu_instance = -1,
                                    .compute_instance = -1,
                                    .product = "NVIDIA H100 80GB HBM3"};
        (void)snprintf(n->uuids[i], sizeof(n->uuids[i]), "GPU-5d3a1f0%zu-9c44-4b0e-a7d2-0f6e2b81c9d%zu", i, i);
        (void)str_copy(d.uuid, sizeof(d.uuid), str_of(n->uuids[i]));
        (void)snprintf(d.pci_bus_id, sizeof(d.pci_bus_id), "00000000:%XB:00.0", (unsigned)(i & 0xF));
        struct snapshot_device *place = snapshot_store_add(store, &d);
        for (int f = 0; f < SNAPSHOT_FIELD_COUNT; f++)
            snapshot_store_record(store, place, (enum snapshot_field)f, value_of((enum snapshot_field)f, i), NOW);
        place->process_list.status = place->process_utilization.status = SNAPSHOT_OK;
        place->process_list.taken_ns = place->process_utilization.taken_ns = NOW;
    }
    n->snapshot = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
}

static void make_owners(struct node *n)
{
    struct snapshot_holding holdings[OWNERS];
    struct snapshot_store *store = snapshot_store_new(NS_PER_S);
    for (size_t i = 0; i < n->n_owners; i++) {
        (void)snprintf(n->names[i][0], sizeof(n->names[i][0]), "team-%zu", i % 5);
        (void)snprintf(n->names[i][1], sizeof(n->names[i][1]), "llm-server-7d9c6b5f4d-x2k%zu", i);
        (void)snprintf(n->names[i][2], sizeof(n->names[i][2]), "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1%02zu", i);
        holdings[i] = (struct snapshot_holding){.uuid = n->uuids[i / PODS_PER_GPU],
                                                .device_id = n->uuids[i / PODS_PER_GPU],
                                                .ns = n->names[i][0],
                                                .pod = n->names[i][1],
                                                .container = "server",
                                                .resource = "nvidia.com/gpu.shared",
                                                .claim_ns = "",
                                                .claim = "",
                                                .is_matched = true,
                                                .is_shared = true,
                                                .shares = 1};
        struct snapshot_device d = {.gpu_instance = -1, .compute_instance = -1};
        (void)snprintf(d.uuid, sizeof(d.uuid), "%zu", i);
        struct snapshot_device *use = snapshot_store_add(store, &d);
        snapshot_store_record(store, use, SNAPSHOT_UTILIZATION, (double)i * 0.71, NOW);
        snapshot_store_record(store, use, SNAPSHOT_MEMORY_USED, (double)i * 1234944, NOW);
    }
    n->uses = snapshot_store_publish(store, NOW);
    snapshot_store_free(store);
    for (size_t i = 0; i < n->n_owners; i++)
        n->holders[i] = (struct snapshot_holder){.device_id = n->snapshot->devices[i / PODS_PER_GPU].id,
                                                 .uuid = n->uuids[i / PODS_PER_GPU],
                                                 .ns = n->names[i][0],
                                                 .pod = n->names[i][1],
                                                 .pod_uid = n->names[i][2],
                                                 .is_listed = true,
                                                 .is_shared = true,
                                                 .shares = 1,
                                                 .use = &n->uses->devices[i]};
    n->list = (struct snapshot_holders){
        .taken_ns = NOW, .sight = SNAPSHOT_SIGHT_OK, .uses = n->uses, .holders = n->holders, .n_holders = n->n_owners};
    n->owners = snapshot_owners_new(&(struct snapshot_owners){.taken_ns = NOW,
                                                              .state = SNAPSHOT_OWNERS_OK,
                                                              .n_matched = n->n_owners,
                                                              .holdings = holdings,
                                                              .n_holdings = n->n_owners});
}

static void node_init(struct node *n, size_t n_gpus)
{
    *n = (struct node){.n_gpus = n_gpus, .n_owners = n_gpus * PODS_PER_GPU, .metrics = metrics_new()};
    make_snapshot(n);
    make_owners(n);
    n->exporter = exporter_new(&(struct exporter_config){
        .metrics = n->metrics, .node_name = "gpu-node-17", .version = "1.2.3", .has_dcgm = true});
}

static void node_fini(struct node *n)
{
    exporter_free(n->exporter);
    metrics_free(n->metrics);
    snapshot_owners_unref(n->owners);
    snapshot_unref(n->uses);
    snapshot_unref(n->snapshot);
}

/* One scrape, into a buffer of its own as the agent's answers are. */
static void scrape(const struct node *n, struct buf *out)
{
    struct exporter_view view = {.snapshot = n->snapshot,
                                 .owners = n->owners,
                                 .holders = &n->list,
                                 .now_ns = NOW + NS_PER_S / 3,
                                 .wall_ns = 1700000000 * NS_PER_S};
    buf_init(out, PAGE_MAX);
    exporter_render(n->exporter, &view, PROMTEXT_TEXT, out);
}

static void compress_once(const struct buf *text)
{
    static unsigned char out[PAGE_MAX];
    z_stream z = {0};
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (Bytef *)text->data;
    z.avail_in = (uInt)text->len;
    z.next_out = out;
    z.avail_out = sizeof(out);
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    (void)deflateEnd(&z);
}

static void measure_pair(const struct node *n, int times)
{
    struct buf page;
    double begin = cpu_us();
    for (int i = 0; i < times; i++) {
        scrape(n, &page);
        if (i + 1 < times)
            buf_fini(&page);
    }
    double middle = cpu_us();
    for (int i = 0; i < times; i++)
        compress_once(&page);
    double end = cpu_us();
    printf("%.2f %.2f %zu\n", (middle - begin) / times, (end - middle) / times, page.len);
    buf_fini(&page);
}

static void measure_growth(long scrapes)
{
    struct node small;
    struct buf page;
    node_init(&small, 1);
    for (int i = 0; i < 1000; i++) {
        scrape(&small, &page);
        buf_fini(&page);
    }
    size_t before = mallinfo2().uordblks;
    for (long i = 0; i < scrapes; i++) {
        scrape(&small, &page);
        buf_fini(&page);
    }
    size_t after = mallinfo2().uordblks;
    printf("growth %lld %ld\n", (long long)after - (long long)before, scrapes);
    node_fini(&small);
}

/* render [PAIRS [SCRAPES]] */
int main(int argc, char **argv)
{
    int64_t pairs = 9, scrapes = 1000000;
    if ((argc > 1 && num_parse_i64(str_of(argv[1]), &pairs) < 0) ||
        (argc > 2 && num_parse_i64(str_of(argv[2]), &scrapes) < 0))
        return 2;
    struct node node;
    node_init(&node, GPUS);
    for (int64_t i = 0; i < pairs; i++)
        measure_pair(&node, 200);
    node_fini(&node);
    if (scrapes > 0)
        measure_growth((long)scrapes);
    return 0;
}
