/* main, and nothing else: it stands in no library, so that tests can link everything but it. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
