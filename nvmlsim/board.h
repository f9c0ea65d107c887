/* board: the catalogue of GPU boards that can be simulated: what they are called, how large they are and what their
 * NVML answers or refuses. Constant data; it knows nothing of time or of scenarios. */
#ifndef NVMLSIM_BOARD_H
#define NVMLSIM_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a board can do beyond the common set. */
enum board_can {
    CAN_GPM = 1 << 0, /* GPM samples: Hopper and later */
    CAN_MIG = 1 << 1,
    CAN_MEMORY_TEMP = 1 << 2,   /* field 82: HBM boards */
    CAN_POWER_AVERAGE = 1 << 3, /* field 185, and PowerUsage is a mean over one second: not T4, not A100 */
    CAN_REMAP_ROWS = 1 << 4,    /* Ampere and later; older boards retire pages */
    CAN_NVLINK_KIB = 1 << 5,    /* fields 138..141: NVLink up to 4 */
    CAN_NVLINK5 = 1 << 6,       /* fields 201..204: Blackwell */
    CAN_MODULE_POWER = 1 << 7,  /* scope 1 of the power fields: Grace superchips */
    CAN_TLIMIT = 1 << 8,        /* temperature thresholds as margins: Ada and later */
    CAN_FABRIC = 1 << 9,        /* NVSwitch fabric state */
    CAN_JPEG = 1 << 10,
    CAN_OFA = 1 << 11,
    CAN_PCIE_COUNT = 1 << 12, /* fields 197, 198 (the driver must be R555 or later, too) */
};

/* MIG: memory comes in eighths, compute in sevenths. */
enum { MIG_SLICES = 7, MIG_MEMORY_SLICES = 8 };

struct board {
    const char *key;  /* in scenarios */
    const char *name; /* what nvmlDeviceGetName says */
    uint32_t architecture, compute_major, compute_minor;
    uint32_t pci_device_id; /* device << 16 | vendor */
    uint32_t pci_domain;    /* of the first GPU */
    uint32_t memory_mib, reserved_mib;
    uint32_t idle_w, limit_w, limit_min_w;
    uint32_t sm_clock_mhz, memory_clock_mhz, video_clock_mhz, idle_clock_mhz;
    uint32_t multiprocessors;
    uint32_t nvlinks, nvlink_version;
    uint32_t pcie_generation;
    uint32_t memory_bus_bits;
    uint32_t encoders, decoders, jpegs, ofas;
    uint32_t can;        /* enum board_can */
    uint16_t mig_gb[4];  /* the GB in profile names with 1, 2, 4 and 8 memory slices */
    uint16_t mig_sms[5]; /* multiprocessors of 1g, 2g, 3g, 4g, 7g */
};

/* The board with this key, any case, or NULL. */
const struct board *board_find(const char *key);
/* All boards; *ret_n is their number. */
const struct board *board_all(size_t *ret_n);

/* A GPU instance profile of a board. */
struct mig_profile {
    uint32_t slices, memory_slices, multiprocessors, memory_mib, copy_engines, decoders, encoders, jpegs, ofas;
    char name[24]; /* "1g.10gb", "1g.10gb+me" */
};
enum { MIG_PROFILES = 7 };
/* Profile i < MIG_PROFILES of a board that can do MIG. Memory is an even share of what is not reserved. */
void board_mig_profile(const struct board *b, size_t i, struct mig_profile *ret_profile);

#endif
