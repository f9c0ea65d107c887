/* `completion`: shell completion scripts, made from the same tables as --help. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void bash_case(const struct command *command, struct buf *out)
{
    (void)buf_printf(out, "    %s) words=\"--help", command->name);
    for (size_t i = 0; i < command->n_options; i++)
        (void)buf_printf(out, " --%s", command->options[i].name);
    (void)buf_append_str(out, "\" ;;\n");
}

static void bash_choices(struct buf *out)
{
    for (size_t c = 0; c < cli_command_count; c++)
        for (size_t i = 0; i < cli_commands[c]->n_options; i++) {
            const struct option_def *def = &cli_commands[c]->options[i];
            if (!def->choices)
                continue;
            (void)buf_printf(out, "    \"%s --%s\") words=\"", cli_commands[c]->name, def->name);
            for (const char *at = def->choices; *at; at++)
                (void)buf_append_char(out, *at == '|' ? ' ' : *at);
            (void)buf_append_str(out, "\" ;;\n");
        }
}

static void write_bash(struct buf *out)
{
    (void)buf_append_str(
        out, "# bash completion for keda-gpu-scaler\n_keda_gpu_scaler()\n{\n"
             "    local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" words=\"\"\n"
             "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"");
    for (size_t c = 0; c < cli_command_count; c++)
        (void)buf_printf(out, "%s%s", c ? " " : "", cli_commands[c]->name);
    (void)buf_append_str(out, "\"\n    else\n    case \"${COMP_WORDS[1]} $previous\" in\n");
    bash_choices(out);
    (void)buf_append_str(out, "    *)\n    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t c = 0; c < cli_command_count; c++)
        bash_case(cli_commands[c], out);
    (void)buf_append_str(
        out, "    esac ;;\n    esac\n    fi\n"
             "    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -W \"$words\" -- \"$current\")\n"
             "    [ \"${#COMPREPLY[@]}\" -gt 0 ] || while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < "
             "<(compgen -f -- \"$current\")\n"
             "}\ncomplete -F _keda_gpu_scaler keda-gpu-scaler\n");
}

/* A help text inside single quotes and brackets of zsh's _arguments. */
static void append_zsh_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            (void)buf_append_str(out, "'\\''");
        else if (*text == '[' || *text == ']' || *text == ':')
            (void)buf_printf(out, "\\%c", *text);
        else
            (void)buf_append_char(out, *text);
    }
}

static void write_zsh(struct buf *out)
{
    (void)buf_append_str(
        out,
        "#compdef keda-gpu-scaler\n_keda_gpu_scaler() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n");
    for (size_t c = 0; c < cli_command_count; c++) {
        (void)buf_printf(out, "      '%s:", cli_commands[c]->name);
        append_zsh_text(out, cli_commands[c]->summary);
        (void)buf_append_str(out, "'\n");
    }
    (void)buf_append_str(out, "    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  "
                              "shift words\n  (( CURRENT-- ))\n  case $command in\n");
    for (size_t c = 0; c < cli_command_count; c++) {
        (void)buf_printf(out, "  %s) _arguments '--help[show help]'", cli_commands[c]->name);
        for (size_t i = 0; i < cli_commands[c]->n_options; i++) {
            const struct option_def *def = &cli_commands[c]->options[i];
            (void)buf_printf(out, " \\\n      '%s--%s[", def->kind == OPTION_LIST ? "*" : "", def->name);
            append_zsh_text(out, def->help);
            (void)buf_append_str(out, "]");
            if (def->choices) {
                (void)buf_printf(out, ":%s:(", def->metavar);
                for (const char *at = def->choices; *at; at++)
                    (void)buf_append_char(out, *at == '|' ? ' ' : *at);
                (void)buf_append_char(out, ')');
            } else if (def->metavar) {
                (void)buf_printf(out, ":%s:%s", def->metavar, strcmp(def->metavar, "FILE") == 0 ? "_files" : "");
            }
            (void)buf_append_char(out, '\'');
        }
        (void)buf_append_str(out, " ;;\n");
    }
    (void)buf_append_str(out, "  esac\n}\n_keda_gpu_scaler \"$@\"\n");
}

static void append_fish_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            (void)buf_append_char(out, '\\');
        (void)buf_append_char(out, *text);
    }
}

static void write_fish(struct buf *out)
{
    (void)buf_append_str(out, "# fish completion for keda-gpu-scaler\ncomplete -c keda-gpu-scaler -f\n");
    for (size_t c = 0; c < cli_command_count; c++) {
        (void)buf_printf(out, "complete -c keda-gpu-scaler -n __fish_use_subcommand -a %s -d '", cli_commands[c]->name);
        append_fish_text(out, cli_commands[c]->summary);
        (void)buf_append_str(out, "'\n");
        for (size_t i = 0; i < cli_commands[c]->n_options; i++) {
            const struct option_def *def = &cli_commands[c]->options[i];
            (void)buf_printf(out, "complete -c keda-gpu-scaler -n '__fish_seen_subcommand_from %s' -l %s",
                             cli_commands[c]->name, def->name);
            if (def->choices) {
                (void)buf_append_str(out, " -x -a '");
                for (const char *at = def->choices; *at; at++)
                    (void)buf_append_char(out, *at == '|' ? ' ' : *at);
                (void)buf_append_char(out, '\'');
            } else if (def->metavar) {
                (void)buf_append_str(out, strcmp(def->metavar, "FILE") == 0 ? " -r -F" : " -x");
            }
            (void)buf_append_str(out, " -d '");
            append_fish_text(out, def->help);
            (void)buf_append_str(out, "'\n");
        }
    }
}

static int run_completion(struct option_set *set)
{
    static const struct {
        const char *shell;
        void (*write)(struct buf *);
    } rows[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    BUF_AUTO struct buf text;
    buf_init(&text, 256 << 10);
    for (size_t i = 0; set->operands.len == 1 && i < ARRAY_LEN(rows); i++)
        if (strcmp(set->operands.items[0], rows[i].shell) == 0) {
            rows[i].write(&text);
            return fputs(buf_cstr(&text), stdout) < 0;
        }
    struct err e;
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "completion takes one shell: bash, zsh or fish");
    return cli_fail(&e, "source <(keda-gpu-scaler completion bash)");
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print a shell completion script",
    .usage = "bash|zsh|fish",
    .details = "",
    .run = run_completion,
};
