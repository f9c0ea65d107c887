/* What `check` knows of a node and what it makes of it: facts in, lines out. Private to cli. */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/cli.h"
#include "snapshot/snapshot.h"

enum { CHECK_PORTS = 3, CHECK_TEXT_MAX = 512 };

enum check_file { CHECK_FILE_ABSENT, CHECK_FILE_DENIED, CHECK_FILE_USABLE };

/* A GPU as NVML shows it; MIG devices are counted at theirs. */
struct check_gpu {
    int index, minor; /* minor: N of /dev/nvidiaN, -1 unknown */
    char uuid[SNAPSHOT_UUID_MAX];
    char lost_reason[SNAPSHOT_TEXT_MAX]; /* "" unless it is lost */
    bool is_lost, is_divided;            /* divided: MIG is on */
    bool is_mig_pending;                 /* MIG goes on or off with the next reset */
    unsigned n_instances;
    enum check_file device_file;
};

/* Who listens on the ports that the agent wants. */
struct check_port {
    const char *flag; /* "--port" */
    int port;         /* 0 = not wanted */
    bool is_taken;
};

/* What was seen, without any judgement. All zero is a machine without anything. */
struct check_facts {
    /* the kernel's side */
    char kernel_version[64];      /* of /proc/driver/nvidia/version; "" when there is none */
    char module_state[32];        /* of /sys/module/nvidia/initstate; "" when there is none */
    enum check_file control_file; /* /dev/nvidiactl */
    bool is_wsl;                  /* /dev/dxg: the driver of Windows, without files of its own */
    int is_profiling_admin_only;  /* RmProfilingAdminOnly: 1, 0, or -1 unknown */
    int mig_monitor_minor;        /* N of /dev/nvidia-caps/nvidia-capN, -1 where MIG needs none */
    enum check_file mig_monitor_file;
    /* NVML's side, by the sampler */
    bool has_answer;                  /* false: NVML did not answer in time */
    char no_answer[CHECK_TEXT_MAX];   /* why not */
    const char *asked_library;        /* path that was asked for; NULL = searched */
    enum snapshot_driver_state state; /* and what the sampler says of it: */
    char state_text[SNAPSHOT_TEXT_MAX], driver_version[80], nvml_version[80], library_path[256];
    VEC(struct check_gpu) gpus;
    bool has_unopened; /* one that the driver lists could not be opened */
    /* this process */
    unsigned uid;
    bool has_sys_admin;  /* CAP_SYS_ADMIN */
    bool sees_host_pids; /* its process namespace is the machine's */
    const char *procfs;  /* what the agent tells processes apart by; "" = not asked for */
    bool has_procfs;     /* and it can be read */
    /* the kubelet */
    const char *kubelet_socket; /* path; "" = not to be asked */
    enum check_file kubelet_file;
    struct err kubelet_error; /* of a List call; class NONE: it answered */
    struct check_port ports[CHECK_PORTS];
};
void check_facts_fini(struct check_facts *facts);

/* Where to look, and for how long. Texts outlive the facts. */
struct check_config {
    const char *root;         /* prefix of /proc, /sys, /dev and the socket; "" the machine itself */
    const char *library_path; /* NULL = search */
    const char *kubelet_socket;
    const char *procfs; /* below the root; "" = not asked for */
    int ports[CHECK_PORTS];
    int64_t timeout_ns; /* for NVML, and again for the kubelet */
};
/* Look at everything. Never fails: what cannot be seen is a fact too. check_facts_fini afterwards. */
void check_collect(const struct check_config *config, struct check_facts *ret_facts);

/* For tests: "550.54.15" out of the text of /proc/driver/nvidia/version; "" when there is none in it. */
void check_parse_kernel_version(struct str text, char ret_version[64]);
/* For tests: does anybody listen on this TCP port, by the text of /proc/net/tcp or tcp6? */
bool check_is_listening(struct str table, int port);

enum check_result { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check_line {
    const char *name; /* of the check; public API */
    enum check_result result;
    char text[CHECK_TEXT_MAX];
    char hint[CHECK_TEXT_MAX]; /* what to do; "" when fine */
};
struct check_report {
    VEC(struct check_line) lines;
    size_t n_warnings, n_failures;
};
/* Judge the facts. */
void check_judge(const struct check_facts *facts, struct check_report *ret_report);
void check_report_fini(struct check_report *report);
const char *check_result_name(enum check_result result);

void check_render_text(const struct check_report *report, bool has_colour, struct buf *out);
void check_render_json(const struct check_report *report, const char *checked_at, struct buf *out);

#endif
