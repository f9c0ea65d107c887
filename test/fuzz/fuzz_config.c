/* The configuration file on any bytes: read or refused with a place, nothing lost. */
#include "agent/agent.h"
#include "cli/cli.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct option_set set;
    struct daemon_reloadable got = {0};
    struct err e = {0};
    option_set_init(&set, agent_options, agent_option_count, NULL);
    int rc = config_text_read("f", (struct str){(const char *)data, size}, &set, &got, &e);
    if (rc < 0 && (strncmp(e.text, "f", 1) != 0 || got.defaults))
        abort();
    free(got.defaults);
    option_set_fini(&set);
    return 0;
}
