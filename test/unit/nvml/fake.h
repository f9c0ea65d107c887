/* Fake NVML libraries for these tests: fake.c compiled once per driver generation, with the symbols that generation
 * exports and answers that the test sets. Not the simulation: nothing here moves by itself. */
#ifndef TEST_NVML_FAKE_H
#define TEST_NVML_FAKE_H

#include "support.h"

#include "nvml/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAKE_RULES_MAX = 8, FAKE_LIST_MAX = 512 };

struct fake {
    struct {
        const char *symbol;
        int rc;
    } rules[FAKE_RULES_MAX]; /* these functions fail so; the others succeed */
    const char *last, *driver_version, *text;
    unsigned calls, init_calls, shutdown_calls;
    uint32_t number; /* of every reading of 32 bits */
    uint32_t second; /* of the second one where a function has two */
    uint64_t big;    /* of every reading of 64 bits */
    struct nvml_memory memory;
    struct nvml_memory_v2 memory_v2;
    struct nvml_utilization utilization;
    int32_t celsius;
    struct nvml_pci_info pci;
    struct nvml_field_value field;          /* every field's answer but for the ids */
    uint32_t processes_len, processes_grow; /* processes_len rises by processes_grow with each call */
    bool has_wide_processes;                /* the 535 fault: elements of 32 bytes from _v3 */
    uint32_t utilizations_len;
    struct nvml_process_utilization utilizations[FAKE_LIST_MAX];
    struct nvml_event_data event;
    uint64_t supported_events, registered_events;
    double gpm_value;
    uint32_t gpm_version, gpm_gpu_instance;
    uint32_t samples_len;
    bool gives_null_handle;
};

/* The path of fake library `name` ("ancient", "470", "535", "610", "broken"), beside the test program. Static. */
static inline const char *fake_path(const char *name)
{
    static char path[PATH_MAX + 64];
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    (void)snprintf(path, sizeof(path), "%s/nvml/libfake_nvml_%s.so", self, name);
    return path;
}

/* Open one without initialising it; *ret_fake is its state, reset. */
static inline struct nvml *fake_open(const char *name, struct fake **ret_fake)
{
    struct err e = {0};
    struct nvml *n = nvml_open(fake_path(name), &e);
    if (!n)
        fail_msg("%s", e.text);
    void *symbol = dlsym(n->handle, "fake_state");
    assert_non_null(symbol);
    struct fake *(*state)(void);
    memcpy(&state, &symbol, sizeof(symbol));
    *ret_fake = state();
    **ret_fake = (struct fake){.driver_version = "610.57.04", .text = "text"};
    return n;
}

/* The handle every fake library gives; never looked into. */
static inline struct nvml_device *fake_device(void)
{
    static int device;
    return (struct nvml_device *)(void *)&device;
}

/* A fake of that name, initialised under a driver version (NULL: "610.57.04"). */
static inline struct nvml *fake_start(const char *name, const char *driver_version, struct fake **ret_fake)
{
    struct nvml *n = fake_open(name, ret_fake);
    if (driver_version)
        (*ret_fake)->driver_version = driver_version;
    assert_int_equal(nvml_init(n), NVML_RC_SUCCESS);
    return n;
}

#endif
