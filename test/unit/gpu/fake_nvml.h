/* The state of the scripted libnvidia-ml.so.1 (fake_nvml.c): a table of answers that a test sets, with no time and no
 * behaviour of its own. The test owns the state; the library finds it by the address in FAKE_NVML. */
#ifndef TEST_GPU_FAKE_NVML_H
#define TEST_GPU_FAKE_NVML_H

#include "nvml/abi.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    FAKE_GPUS = 9,
    FAKE_MIGS = 8,
    FAKE_FIELDS = 32,
    FAKE_RULES = 16,
    FAKE_EVENTS = 8,
    FAKE_GPM_IDS = 64,
    FAKE_PROCESSES = 300
};

/* Handles point at this. */
struct nvml_device {
    int gpu, mig; /* mig: -1 for the GPU itself */
};

struct fake_mig {
    bool is_there;
    struct nvml_device handle;
    char uuid[NVML_UUID_MAX], name[NVML_NAME_MAX];
    uint32_t gi, ci;
    uint64_t used, total;
    double gpm[FAKE_GPM_IDS];
};

struct fake_field {
    uint32_t id, scope, type;
    uint64_t value;
};

struct fake_process {
    int list; /* enum nvml_process_kind */
    uint32_t pid;
    uint64_t bytes;
    uint32_t gi, ci; /* as the list says; matter with MIG on */
};

struct fake_gpu {
    struct nvml_device handle;
    char uuid[NVML_UUID_MAX];
    int is_lost; /* the code that everything answers (15, 16), or 0 */
    uint32_t utilization, memory_utilization, celsius, power_mw, limit_mw, sm_mhz, memory_mhz, encoder, decoder, fan;
    uint32_t generation, width, max_generation, max_width;
    uint64_t used, reserved, total, energy_mj, reasons, corrected, uncorrected;
    uint32_t pcie_tx_kb, pcie_rx_kb;
    uint32_t remapped[4];
    int mig_rc; /* of GetMigMode */
    bool is_mig_on, is_mig_pending_other, has_gpm;
    struct fake_mig migs[FAKE_MIGS];
    size_t n_fields;
    struct fake_field fields[FAKE_FIELDS];
    double gpm[FAKE_GPM_IDS];
    bool hides_instances; /* the GPU itself does not list the processes of its MIG devices: no permission */
    size_t n_processes, n_samples;
    struct fake_process processes[FAKE_PROCESSES];
    struct nvml_process_utilization samples[FAKE_PROCESSES]; /* those after the time asked for are given */
    uint64_t asked_since_us;                                 /* that time, of the last call */
    unsigned list_calls, utilization_calls;
};

/* "This function, on this GPU (-1: any), answers that." */
struct fake_rule {
    const char *function;
    int gpu, rc;
};

struct fake_nvml {
    int init_rc;
    uint32_t n_gpus;
    struct fake_gpu gpus[FAKE_GPUS];
    size_t n_rules;
    struct fake_rule rules[FAKE_RULES];
    size_t n_events;
    struct nvml_event_data events[FAKE_EVENTS];
    bool lacks_memory_v2;
    /* what the library did */
    atomic_uint n_calls, inits, shutdowns;
    unsigned samples_live, sets_live, pcie_blocking_calls;
    unsigned registered, probes; /* tries to register events, to find by PCI id */
    /* a call that does not return: posted `entered` on the way in, waits for `leave` */
    const char *_Atomic block_in;
    sem_t entered, leave;
};

#endif
