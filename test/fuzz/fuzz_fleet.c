/* Any bytes as an agent's stream: each piece of the input is one update, taken or refused. What the node then says is
 * whole, in order and inside its ceilings. */
#include "fleet/fleet.h"

#include <math.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1024 };

static void check(bool is_right)
{
    if (!is_right)
        abort();
}

static void check_readings(const struct fleet_node *node, const struct fleet_reading *readings)
{
    for (size_t i = 0; i < node->n_wants; i++) {
        const struct fleet_reading *r = &readings[i];
        check(isfinite(r->mean) && isfinite(r->peak) && isfinite(r->integral) && isfinite(r->valid_s));
        check(r->mean >= 0 && r->peak >= 0 && r->integral >= 0 && r->valid_s >= 0);
        check(r->status != FLEET_OK || r->taken_ns != 0);
        check(r->taken_ns <= node->taken_ns || r->status != FLEET_OK);
        (void)fleet_reading_is_fresh(node, i, r, node->heard_ns);
    }
}

static void check_text(const char *text)
{
    check(strnlen(text, TEXT_BYTES_MAX + 1) <= TEXT_BYTES_MAX && str_is_utf8(str_of(text)));
}

static void check_holders(const struct fleet_node *node)
{
    for (size_t i = 0; i < node->n_holders; i++) {
        const struct fleet_holder *h = &node->holders[i], *before = i ? h - 1 : NULL;
        size_t n;
        check(h->device >= node->devices && h->device < node->devices + node->n_devices);
        check_text(h->ns);
        check_text(h->pod);
        check_text(h->pod_uid);
        int order = before ? strcmp(before->ns, h->ns) : -1;
        check(order < 0 || (order == 0 && strcmp(before->pod, h->pod) <= 0));
        const struct fleet_holder *found = fleet_holders_of(node, h->ns, h->pod, &n);
        check(found && found <= h && h < found + n);
        check(h->n_minutes <= SNAPSHOT_MINUTES && (h->n_minutes == 0 || h->minutes));
        for (size_t k = 0; k < h->n_minutes; k++)
            check(isfinite(h->minutes[k].low) && isfinite(h->minutes[k].high));
        if (h->readings)
            check_readings(node, h->readings);
    }
}

static void check_node(const struct fleet_node *node)
{
    check(node->n_devices <= SNAPSHOT_DEVICES_MAX && node->n_holders <= 4096 && node->n_wants <= FLEET_WANTS_MAX);
    check_text(node->name);
    check_text(node->driver_text);
    check_text(node->sight_text);
    for (size_t i = 0; i < node->n_devices; i++) {
        check_text(node->devices[i].uuid);
        check_text(node->devices[i].lost_reason);
        check_readings(node, node->devices[i].readings);
    }
    check_holders(node);
}

/* Pieces: a length in two bytes, then that many bytes; time passes by what is left of the length's upper bits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fleet_store *store = fleet_store_new("10.0.0.7:6000");
    int64_t now_ns = 1000 * NS_PER_S;
    struct err e;
    while (size >= 2) {
        size_t head = (size_t)data[0] | (size_t)data[1] << 8, len = head & 0x0FFF;
        now_ns += (int64_t)(head >> 12) * 700 * NS_PER_MS;
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        (void)fleet_store_apply(store, (struct str){(const char *)data, len}, now_ns, &e);
        check_node(fleet_store_node(store));
        data += len;
        size -= len;
    }
    fleet_store_free(store);
    return 0;
}
