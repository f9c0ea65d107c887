/* cli: the program's command line: main, the option tables, one file per command. It parses configuration (flags,
 * environment, file) and hands the programs plain structs. Public to nobody: cli is the top of the table. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_PROGRAM "keda-gpu-scaler"
#ifndef CLI_VERSION
#define CLI_VERSION "unknown" /* the build passes the content of VERSION */
#endif
const char *cli_compiler(void);

/* ---- options: one table a command ---- */

enum option_kind { OPTION_TEXT, OPTION_INT, OPTION_DURATION, OPTION_BOOL, OPTION_LIST, OPTION_CHOICE };

/* Change procedure: a flag is public API. A new one appears in --help, completions and the man page's check by itself;
 * docs/configuration.md and the golden test of --help change with it. */
struct option_def {
    const char *name; /* long form, without dashes */
    enum option_kind kind;
    const char *fallback; /* default as text; "" none */
    const char *metavar;  /* "ADDR"; NULL for bool */
    const char *help;     /* one sentence, no full stop */
    const char *choices;  /* OPTION_CHOICE: "debug|info|warn|error" */
    int64_t min, max;     /* OPTION_INT; OPTION_DURATION in ns; 0,0 = any >= 0 */
    char letter;          /* short form, 0 none */
    bool is_flag_only;    /* a file may not set it */
};

enum option_origin { OPTION_DEFAULT, OPTION_FILE, OPTION_ENVIRONMENT, OPTION_FLAG };

struct option_value {
    enum option_origin origin;
    VEC(char *) texts; /* one, or several for OPTION_LIST; owned */
};

struct option_set {
    const struct option_def *defs;
    size_t n;
    const char *env_prefix; /* "KEDA_GPU_SCALER_"; NULL = the environment is not read */
    struct option_value *values;
    VEC(char *) operands; /* what is not an option; views into argv */
};

/* Rows that several commands have. Where the kubelet names pods (with attribution/attribution.h); the library that is
 * searched for unless it is named. */
#define OPTIONS_POD_NAMES                                                                                              \
    {.name = "pod-logs",                                                                                               \
     .kind = OPTION_TEXT,                                                                                              \
     .fallback = ATTRIBUTION_POD_LOGS,                                                                                 \
     .metavar = "PATH",                                                                                                \
     .help = "with --procfs: the kubelet's folders of logs, which name pods by UID"},                                  \
    {                                                                                                                  \
        .name = "container-logs", .kind = OPTION_TEXT, .fallback = ATTRIBUTION_LOG_LINKS, .metavar = "PATH",           \
        .help = "with --procfs: the kubelet's links to logs, which name pods by container"                             \
    }

#define OPTION_NVML_SEARCHED                                                                                           \
    {                                                                                                                  \
        .name = "nvml-library", .kind = OPTION_TEXT, .fallback = "", .metavar = "PATH",                                \
        .help = "libnvidia-ml.so.1 to load (default: search, NVML_LIB first)"                                          \
    }

void option_set_init(struct option_set *set, const struct option_def *defs, size_t n, const char *env_prefix);
void option_set_fini(struct option_set *set);
/* argv[0] is not looked at. Unknown flags, missing and malformed values are INVALID_ARGUMENT with what is allowed. */
int option_set_parse(struct option_set *set, int argc, char **argv, struct err *e);
/* Variables PREFIX_NAME, lists separated by commas. Empty ones count as absent, and so do the addresses that Kubernetes
 * puts there for each Service of the namespace: one named keda-gpu-scaler sets KEDA_GPU_SCALER_PORT=tcp://... */
int option_set_environment(struct option_set *set, struct err *e);
/* Is there a row of this name that a file may set, and may it have several values? If there is none, the error names
 * the nearest key. */
int option_set_file_key(const struct option_set *set, const char *name, bool *ret_is_list, struct err *e);
/* One value from a file: only what no flag or variable has set. The name is one that option_set_file_key knows. */
int option_set_file_value(struct option_set *set, const char *name, const char *value, struct err *e);

const char *option_text(const struct option_set *set, const char *name);         /* "" when unset */
const char *option_text_or_null(const struct option_set *set, const char *name); /* NULL when unset or empty */
int64_t option_int(const struct option_set *set, const char *name);
int64_t option_duration(const struct option_set *set, const char *name); /* ns */
bool option_bool(const struct option_set *set, const char *name);
/* The texts of a list; *ret_n may be 0. */
char *const *option_list(const struct option_set *set, const char *name, size_t *ret_n);
bool option_is_set(const struct option_set *set, const char *name); /* by anything but the default */

/* The table as --help shows it, and as --print-config does: YAML that --config reads, with where each value came from.
 */
void option_help(const struct option_def *defs, size_t n, struct buf *out);
void option_print(const struct option_set *set, struct buf *out);

/* ---- commands ---- */

struct command {
    const char *name;
    const char *summary; /* one line */
    const char *usage;   /* after the name: "[flags] ADDRESS" */
    const char *choices; /* what the first operand may be, for completion: "bash|zsh|fish"; NULL anything */
    size_t max_operands;
    const char *details; /* paragraphs for --help; "" none */
    const struct option_def *options;
    size_t n_options;
    const char *env_prefix;
    /* Exit code. options are parsed; operands are in set. */
    int (*run)(struct option_set *set);
};
extern const struct command command_agent, command_call, command_cert, command_check, command_completion, command_demo,
    command_explain, command_get, command_gpu_metrics, command_help, command_hub, command_probe, command_top,
    command_version;
extern const struct command *const cli_commands[];
extern const size_t cli_command_count;
const struct command *cli_find_command(const char *name);
/* The whole program: returns its exit code. */
int cli_main(int argc, char **argv);
/* Write --help of a command, or of the program for NULL. */
void cli_help(const struct command *command, struct buf *out);

/* Write out what stands in stdout's buffer. False when nobody can read it any more: silently where the reader went away
 * (head), with a message otherwise. */
bool cli_flush(void);

/* May stdout be coloured: a terminal that is not dumb, and NO_COLOR is unset or empty. */
bool cli_has_colour(void);

/* "keda-gpu-scaler: text" on stderr, with the hint on a line of its own where there is one. Returns the exit code. */
int cli_fail(const struct err *e, const char *hint);

/* ---- configuration of the agent, shared by agent and demo ---- */

struct agent_config;
struct daemon_reloadable;
extern const struct option_def agent_options[];
extern const size_t agent_option_count;
/* Fill config from the set (which must outlive it); its defaults are malloced. The `metrics:` entries of --config are
 * read here too. */
int agent_config_from_options(struct option_set *set, struct agent_config *config, struct err *e);
/* Read a YAML configuration file into the set and *ret's defaults. Errors carry file:line:column. */
int config_file_read(const char *path, struct option_set *set, struct daemon_reloadable *ret, struct err *e);
/* The same from text, for tests and fuzzing; `path` is only for messages. */
int config_text_read(const char *path, struct str text, struct option_set *set, struct daemon_reloadable *ret,
                     struct err *e);

#endif
