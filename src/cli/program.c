/* The program: finds the command, parses its options, runs it. Without a subcommand a leading flag means `agent`, as
 * the reference's manifests have it. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct command *const cli_commands[] = {
    &command_agent,       &command_hub,     &command_explain,    &command_get,   &command_check,
    &command_top,         &command_demo,    &command_call,       &command_probe, &command_cert,
    &command_gpu_metrics, &command_version, &command_completion, &command_help,
};
const size_t cli_command_count = ARRAY_LEN(cli_commands);

const char *cli_compiler(void)
{
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

const struct command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

void cli_help(const struct command *command, struct buf *out)
{
    if (!command) {
        (void)buf_printf(out,
                         "Scales GPU workloads in Kubernetes: KEDA's external scaler.\n\nUsage: %s COMMAND [flags]\n\n",
                         CLI_PROGRAM);
        for (size_t i = 0; i < cli_command_count; i++)
            (void)buf_printf(out, "  %-12s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
        (void)buf_printf(out, "\n%s COMMAND --help shows a command's flags. A flag without a command means `agent`.\n",
                         CLI_PROGRAM);
        return;
    }
    (void)buf_printf(out, "%s\n\nUsage: %s %s%s%s\n", command->summary, CLI_PROGRAM, command->name,
                     *command->usage ? " " : "", command->usage);
    if (*command->details)
        (void)buf_printf(out, "\n%s\n", command->details);
    if (command->n_options) {
        (void)buf_append_str(out, "\nFlags:\n");
        option_help(command->options, command->n_options, out);
    }
    if (command->env_prefix)
        (void)buf_printf(out, "\nEach flag is also read from %sNAME (dashes as underscores).\n", command->env_prefix);
}

int cli_fail(const struct err *e, const char *hint)
{
    (void)fprintf(stderr, "%s: %s\n", CLI_PROGRAM, e->text);
    if (hint && *hint)
        (void)fprintf(stderr, "hint: %s\n", hint);
    return err_exit_code(e->class);
}

bool cli_flush(void)
{
    static bool has_failed; /* said once; errno is of the first failure only */
    if (has_failed)
        return false;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    struct err e;
    has_failed = true;
    if (errno != EPIPE) {
        (void)err_set_errno(&e, ERR_UNKNOWN, errno, "cannot write the output");
        (void)cli_fail(&e, "");
    }
    return false;
}

bool cli_has_colour(void)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool is_capable = isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    return is_capable && !(no_colour && *no_colour);
}

static void print_help(const struct command *command, FILE *stream)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 64 << 10);
    cli_help(command, &text);
    (void)fputs(buf_cstr(&text), stream);
}

static bool has_flag(int argc, char **argv, const char *longer, const char *shorter)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], longer) == 0 || strcmp(argv[i], shorter) == 0 || strcmp(argv[i], longer + 1) == 0)
            return true;
    return false;
}

static int refuse_operand(const struct command *command, const char *operand)
{
    char hint[64];
    struct err e;
    if (command->max_operands == 0)
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "%s takes no operand, but was given \"%s\"", command->name, operand);
    else
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "%s takes %s, but was also given \"%s\"", command->name, command->usage,
                      operand);
    (void)snprintf(hint, sizeof(hint), CLI_PROGRAM " %s --help", command->name);
    return cli_fail(&e, hint);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    if (has_flag(argc, argv, "--help", "-h")) {
        print_help(command, stdout);
        return 0;
    }
    struct option_set set;
    struct err e;
    int rc;
    option_set_init(&set, command->options, command->n_options, command->env_prefix);
    if (option_set_parse(&set, argc, argv, &e) < 0 || option_set_environment(&set, &e) < 0)
        rc = cli_fail(&e, "");
    else if (set.operands.len > command->max_operands)
        rc = refuse_operand(command, set.operands.items[command->max_operands]);
    else
        rc = command->run(&set);
    option_set_fini(&set);
    return rc;
}

/* Is the program called by this name, as a link of it? */
static bool is_called(const char *path, const char *name)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return path && strcmp(slash ? slash + 1 : path, name) == 0;
}

static int run_gpu_metrics(int argc, char **argv)
{
    bool is_version = argc > 1 && strcmp(argv[1], "version") == 0;
    if (is_version || has_flag(argc, argv, "--version", "-V"))
        return run_command(&command_version, 1, argv);
    return run_command(&command_gpu_metrics, argc, argv);
}

static int run_arguments(int argc, char **argv)
{
    if (argc > 0 && is_called(argv[0], command_gpu_metrics.name))
        return run_gpu_metrics(argc, argv);
    if (argc < 2) {
        print_help(NULL, stderr);
        return 2;
    }
    if (argv[1][0] == '-') {
        if (has_flag(2, argv, "--help", "-h")) {
            print_help(NULL, stdout);
            return 0;
        }
        if (has_flag(2, argv, "--version", "-V"))
            return run_command(&command_version, 1, argv);
        return run_command(&command_agent, argc, argv);
    }
    const struct command *command = cli_find_command(argv[1]);
    if (command == &command_gpu_metrics)
        return run_gpu_metrics(argc - 1, argv + 1);
    if (command)
        return run_command(command, argc - 1, argv + 1);
    const char *names[16];
    for (size_t i = 0; i < cli_command_count; i++)
        names[i] = cli_commands[i]->name;
    const char *near = str_nearest(argv[1], names, cli_command_count);
    struct err e;
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "unknown command \"%s\"%s%s%s", argv[1], near ? "; did you mean `" : "",
                  near ? near : "", near ? "`?" : "");
    return cli_fail(&e, "keda-gpu-scaler --help lists the commands");
}

int cli_main(int argc, char **argv)
{
    int rc = run_arguments(argc, argv);
    return cli_flush() || rc ? rc : 1; /* what nobody could read is not done */
}
