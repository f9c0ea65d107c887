/* `completion`: shell completion scripts, made from the same tables as --help and as the trigger's metadata. */
#include "cli/cli.h"
#include "trigger/trigger.h"

#include <stdio.h>
#include <string.h>

/* ---- what the shells have in common ---- */

enum { LIST_MAX = 4096 };

/* "a|b" as "a b". */
static void append_words(struct buf *out, const char *choices)
{
    for (; *choices; choices++)
        (void)buf_append_char(out, *choices == '|' ? ' ' : *choices);
}

static void append_commands(struct buf *out)
{
    for (size_t c = 0; c < cli_command_count; c++)
        (void)buf_printf(out, "%s%s", c ? " " : "", cli_commands[c]->name);
}

/* What the first operand of a command may be, space-separated; nothing where it may be anything. */
static void append_operands(struct buf *out, const struct command *command)
{
    if (command == &command_help)
        append_commands(out);
    else if (command->choices)
        append_words(out, command->choices);
}

static bool is_file(const struct option_def *def)
{
    return def->metavar && (strcmp(def->metavar, "FILE") == 0 || strcmp(def->metavar, "PATH") == 0) &&
           strcmp(def->name, "http") != 0; /* a path of a page */
}

static bool is_metadata(const struct option_def *def)
{
    return strcmp(def->name, "metadata") == 0;
}

/* The metadata keys whose values are words, and those words. */
struct words {
    const char *key;
    char values[LIST_MAX];
};
enum { WORD_KEYS = 7 };

static void add_word(struct words *words, const char *word)
{
    size_t len = strlen(words->values);
    (void)snprintf(words->values + len, sizeof(words->values) - len, "%s%s", len ? " " : "", word);
}

static void fill_words(struct words words[WORD_KEYS])
{
    static const char *const keys[WORD_KEYS] = {"profile",   "metricType",    "aggregation", "scope",
                                                "onMissing", "hpaMetricType", "engineScheme"};
    for (size_t i = 0; i < WORD_KEYS; i++)
        words[i] = (struct words){.key = keys[i]};
#define X(name, metric_name, metric, target, activation, engine) add_word(&words[0], name);
    TRIGGER_PROFILES(X)
#undef X
    for (int i = 0; i < TRIGGER_METRIC_COUNT; i++)
        add_word(&words[1], trigger_metric_name((enum trigger_metric)i));
    for (int i = 0; i < SCALING_AGGREGATION_COUNT; i++)
        add_word(&words[2], scaling_aggregation_name((enum scaling_aggregation)i));
    static const enum trigger_scope scopes[] = {TRIGGER_NODE, TRIGGER_WORKLOAD, TRIGGER_CLUSTER};
    static const enum trigger_on_missing rules[] = {TRIGGER_MISSING_CONSERVATIVE, TRIGGER_MISSING_ERROR,
                                                    TRIGGER_MISSING_IGNORE};
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        add_word(&words[3], trigger_scope_name(scopes[i]));
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        add_word(&words[4], trigger_on_missing_name(rules[i]));
    add_word(&words[5], "AverageValue Value");
    add_word(&words[6], "http https");
}

static void append_metadata_keys(struct buf *out)
{
#define X(id, name, alias, allowed) " " name "="
    (void)buf_append_str(out, &(TRIGGER_KEYS(X))[1]);
#undef X
}

/* ---- bash ---- */

/* Bash cuts words at `=`: in `--log-level=de` and `-m profile=ba` the name stands two words before. */
static const char bash_start[] =
    "# bash completion for keda-gpu-scaler\n"
    "_keda_gpu_scaler()\n"
    "{\n"
    "    local current=\"${COMP_WORDS[COMP_CWORD]}\" at=$((COMP_CWORD - 1)) has_equals=\"\" command=\"\" words=\"\" "
    "word\n"
    "    COMPREPLY=()\n"
    "    if [ \"$current\" = = ]; then\n"
    "        current=\"\" has_equals=1\n"
    "    elif [ \"${COMP_WORDS[at]}\" = = ]; then\n"
    "        at=$((at - 1)) has_equals=1\n"
    "    fi\n"
    "    local name=\"${COMP_WORDS[at]}\" before=\"\" is_first=\"\"\n"
    "    [ \"$at\" -gt 1 ] && before=\"${COMP_WORDS[at - 1]}\"\n"
    "    [ \"$COMP_CWORD\" -eq 2 ] && is_first=1\n"
    "    [ \"$COMP_CWORD\" -gt 1 ] && command=\"${COMP_WORDS[1]}\"\n"
    "    if [ -n \"$has_equals\" ] && { [ \"$before\" = -m ] || [ \"$before\" = --metadata ]; }; then\n"
    "        case \"$name\" in\n";

static const char bash_end[] =
    "    if [ -n \"$words\" ]; then\n"
    "        while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -W \"$words\" -- \"$current\")\n"
    "    fi\n"
    "    if [ \"${#COMPREPLY[@]}\" -eq 1 ] && [ \"${COMPREPLY[0]: -1}\" = = ]; then\n"
    "        compopt -o nospace\n"
    "    fi\n"
    "}\n"
    "_keda_gpu_scaler_files()\n"
    "{\n"
    "    local word\n"
    "    compopt -o filenames\n"
    "    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -f -- \"$1\")\n"
    "}\n"
    "complete -F _keda_gpu_scaler keda-gpu-scaler\n";

static void bash_metadata(struct buf *out)
{
    struct words words[WORD_KEYS];
    fill_words(words);
    for (size_t i = 0; i < WORD_KEYS; i++)
        (void)buf_printf(out, "        %s) words=\"%s\" ;;\n", words[i].key, words[i].values);
    (void)buf_append_str(out, "        esac\n");
}

/* The pattern of an option that takes a value: "call --output" and "call -o". */
static void bash_pattern(struct buf *out, const struct command *command, const struct option_def *def)
{
    (void)buf_printf(out, "    \"%s --%s\"", command->name, def->name);
    if (def->letter)
        (void)buf_printf(out, " | \"%s -%c\"", command->name, def->letter);
    (void)buf_append_str(out, ") ");
}

static void bash_values(struct buf *out, const struct command *command)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct option_def *def = &command->options[i];
        if (!def->metavar)
            continue;
        bash_pattern(out, command, def);
        if (is_metadata(def)) {
            (void)buf_append_str(out, "words=\"");
            append_metadata_keys(out);
            (void)buf_append_str(out, "\" ;;\n");
        } else if (def->choices) {
            (void)buf_append_str(out, "words=\"");
            append_words(out, def->choices);
            (void)buf_append_str(out, "\" ;;\n");
        } else {
            (void)buf_append_str(out, is_file(def) ? "_keda_gpu_scaler_files \"$current\" ;;\n" : ";;\n");
        }
    }
}

/* Flags where a dash was typed or no operand is expected; the choices of the first operand. */
static void bash_rest(struct buf *out, const struct command *command)
{
    bool has_operands = command == &command_help || command->choices;
    (void)buf_printf(out, "        %s)\n", command->name);
    if (has_operands) {
        (void)buf_append_str(out, "            [ -n \"$is_first\" ] && words=\"");
        append_operands(out, command);
        (void)buf_append_str(out, "\"\n");
    }
    (void)buf_printf(out, "            [ \"${current:0:1}\" = - ]%s && words=\"--help",
                     has_operands ? "" : " || [ -z \"$current\" ]");
    for (size_t i = 0; i < command->n_options; i++)
        (void)buf_printf(out, " --%s", command->options[i].name);
    (void)buf_append_str(out, "\"\n            ;;\n");
}

static void write_bash(struct buf *out)
{
    (void)buf_append_str(out, bash_start);
    bash_metadata(out);
    (void)buf_append_str(out, "    elif [ -z \"$command\" ]; then\n        words=\"");
    append_commands(out);
    (void)buf_append_str(out, " --help --version\"\n    else\n    case \"$command $name\" in\n");
    for (size_t c = 0; c < cli_command_count; c++)
        bash_values(out, cli_commands[c]);
    (void)buf_append_str(out, "    *)\n        case \"$command\" in\n");
    for (size_t c = 0; c < cli_command_count; c++)
        bash_rest(out, cli_commands[c]);
    (void)buf_append_str(out, "        esac\n        ;;\n    esac\n    fi\n");
    (void)buf_append_str(out, bash_end);
}

/* ---- zsh ---- */

/* A text inside single quotes and brackets of _arguments. */
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

static void zsh_option(struct buf *out, const struct option_def *def)
{
    const char *repeat = def->kind == OPTION_LIST ? "*" : "";
    char letter[3] = {'-', def->letter, '\0'};
    for (int is_short = def->letter ? 1 : 0; is_short >= 0; is_short--) {
        const char *equals = def->metavar ? is_short ? "+" : "=" : "";
        (void)buf_printf(out, " \\\n      '%s%s%s%s[", repeat, is_short ? "" : "--", is_short ? letter : def->name,
                         equals);
        append_zsh_text(out, def->help);
        (void)buf_append_char(out, ']');
        if (def->metavar)
            (void)buf_printf(out, ":%s:", def->metavar);
        if (is_metadata(def)) {
            (void)buf_append_str(out, "_keda-gpu-scaler_metadata");
        } else if (def->choices) {
            (void)buf_append_char(out, '(');
            append_words(out, def->choices);
            (void)buf_append_char(out, ')');
        } else if (is_file(def)) {
            (void)buf_append_str(out, "_files");
        }
        (void)buf_append_char(out, '\'');
    }
}

static void zsh_command(struct buf *out, const struct command *command)
{
    (void)buf_printf(out, "  %s)\n    _arguments -s '(-h --help)'{-h,--help}'[show help]'", command->name);
    for (size_t i = 0; i < command->n_options; i++)
        zsh_option(out, &command->options[i]);
    if (command == &command_help || command->choices) {
        (void)buf_append_str(out, " \\\n      '1:operand:(");
        append_operands(out, command);
        (void)buf_append_str(out, ")'");
    }
    (void)buf_append_str(out, " ;;\n");
}

static void zsh_metadata(struct buf *out)
{
    struct words words[WORD_KEYS];
    fill_words(words);
    (void)buf_append_str(out, "_keda-gpu-scaler_metadata() {\n");
    for (size_t i = 0; i < WORD_KEYS; i++)
        (void)buf_printf(out, "  %s compset -P '%s='; then compadd -- %s\n", i ? "elif" : "if", words[i].key,
                         words[i].values);
    (void)buf_append_str(out, "  elif ! compset -P '*='; then compadd -S '' -- ");
    append_metadata_keys(out);
    (void)buf_append_str(out, "\n  fi\n}\n");
}

/* Both ways in: found in $fpath by its name, and sourced. */
static void write_zsh(struct buf *out)
{
    (void)buf_append_str(out, "#compdef keda-gpu-scaler\n");
    zsh_metadata(out);
    (void)buf_append_str(out, "_keda-gpu-scaler() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n");
    for (size_t c = 0; c < cli_command_count; c++) {
        (void)buf_printf(out, "      '%s:", cli_commands[c]->name);
        append_zsh_text(out, cli_commands[c]->summary);
        (void)buf_append_str(out, "'\n");
    }
    (void)buf_append_str(out, "    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  "
                              "shift words\n  (( CURRENT-- ))\n  case $command in\n");
    for (size_t c = 0; c < cli_command_count; c++)
        zsh_command(out, cli_commands[c]);
    (void)buf_append_str(out, "  esac\n}\n"
                              "if [[ $funcstack[1] == _keda-gpu-scaler ]]; then\n"
                              "  _keda-gpu-scaler \"$@\"\n"
                              "else\n"
                              "  compdef _keda-gpu-scaler keda-gpu-scaler\n"
                              "fi\n");
}

/* ---- fish ---- */

static void append_fish_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            (void)buf_append_char(out, '\\');
        (void)buf_append_char(out, *text);
    }
}

static void fish_metadata_words(struct buf *out)
{
    struct words words[WORD_KEYS];
    fill_words(words);
    append_metadata_keys(out);
    for (size_t i = 0; i < WORD_KEYS; i++) {
        struct str rest = str_of(words[i].values);
        while (rest.ptr) {
            struct str word = str_cut(&rest, ' ');
            (void)buf_printf(out, " %s=%.*s", words[i].key, (int)word.len, word.ptr);
        }
    }
}

static void fish_option(struct buf *out, const struct command *command, const struct option_def *def)
{
    (void)buf_printf(out, "complete -c keda-gpu-scaler -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                     def->name);
    if (def->letter)
        (void)buf_printf(out, " -s %c", def->letter);
    if (is_metadata(def) || def->choices) {
        (void)buf_append_str(out, " -x -a '");
        if (is_metadata(def))
            fish_metadata_words(out);
        else
            append_words(out, def->choices);
        (void)buf_append_char(out, '\'');
    } else if (def->metavar) {
        (void)buf_append_str(out, is_file(def) ? " -r -F" : " -x");
    }
    (void)buf_append_str(out, " -d '");
    append_fish_text(out, def->help);
    (void)buf_append_str(out, "'\n");
}

static void write_fish(struct buf *out)
{
    (void)buf_append_str(
        out, "# fish completion for keda-gpu-scaler\n"
             "complete -c keda-gpu-scaler -f\n"
             "complete -c keda-gpu-scaler -s h -l help -d 'show help'\n"
             "complete -c keda-gpu-scaler -n __fish_use_subcommand -s V -l version -d 'print the version'\n");
    for (size_t c = 0; c < cli_command_count; c++) {
        const struct command *command = cli_commands[c];
        (void)buf_printf(out, "complete -c keda-gpu-scaler -n __fish_use_subcommand -a %s -d '", command->name);
        append_fish_text(out, command->summary);
        (void)buf_append_str(out, "'\n");
        if (command == &command_help || command->choices) {
            (void)buf_printf(out,
                             "complete -c keda-gpu-scaler -n '__fish_seen_subcommand_from %s; and test (count "
                             "(commandline -opc)) -eq 2' -a '",
                             command->name);
            append_operands(out, command);
            (void)buf_append_str(out, "'\n");
        }
        for (size_t i = 0; i < command->n_options; i++)
            fish_option(out, command, &command->options[i]);
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
            (void)fputs(buf_cstr(&text), stdout);
            return 0;
        }
    struct err e;
    (void)err_set(&e, ERR_INVALID_ARGUMENT, "completion takes one shell: bash, zsh or fish");
    return cli_fail(&e, "source <(keda-gpu-scaler completion bash)");
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print a shell completion script",
    .usage = "bash|zsh|fish",
    .choices = "bash|zsh|fish",
    .max_operands = 1,
    .details = "bash: source <(keda-gpu-scaler completion bash), in ~/.bashrc\n"
               "zsh:  source <(keda-gpu-scaler completion zsh), in ~/.zshrc after compinit\n"
               "fish: keda-gpu-scaler completion fish | source, in ~/.config/fish/config.fish",
    .run = run_completion,
};
