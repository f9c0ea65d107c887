/* `version` and `help`. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct option_def version_options[] = {
    {.name = "output",
     .kind = OPTION_CHOICE,
     .fallback = "text",
     .metavar = "FORMAT",
     .help = "form of the output",
     .choices = "text|json",
     .letter = 'o'},
};

static int run_version(struct option_set *set)
{
    bool is_json = set->n && strcmp(option_text(set, "output"), "json") == 0;
    BUF_AUTO struct buf text;
    buf_init(&text, 4096);
    if (is_json) {
        struct json j;
        json_init(&j, &text, 2);
        json_object_begin(&j);
        json_kv_string(&j, "program", CLI_PROGRAM);
        json_kv_string(&j, "version", CLI_VERSION);
        json_kv_string(&j, "compiler", cli_compiler());
        json_object_end(&j);
        (void)buf_append_char(&text, '\n');
    } else {
        (void)buf_printf(&text, "%s %s (%s)\n", CLI_PROGRAM, CLI_VERSION, cli_compiler());
    }
    return fputs(buf_cstr(&text), stdout) < 0;
}

const struct command command_version = {
    .name = "version",
    .summary = "Print the version",
    .usage = "[flags]",
    .details = "",
    .options = version_options,
    .n_options = ARRAY_LEN(version_options),
    .run = run_version,
};

static int run_help(struct option_set *set)
{
    const struct command *command = NULL;
    if (set->operands.len) {
        command = cli_find_command(set->operands.items[0]);
        struct err e;
        (void)err_set(&e, ERR_INVALID_ARGUMENT, "unknown command \"%s\"", set->operands.items[0]);
        if (!command)
            return cli_fail(&e, "keda-gpu-scaler help lists the commands");
    }
    BUF_AUTO struct buf text;
    buf_init(&text, 64 << 10);
    cli_help(command, &text);
    return fputs(buf_cstr(&text), stdout) < 0;
}

const struct command command_help = {
    .name = "help",
    .summary = "Show help",
    .usage = "[COMMAND]",
    .max_operands = 1,
    .details = "",
    .run = run_help,
};
