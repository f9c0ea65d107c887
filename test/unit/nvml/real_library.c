/* Opens the library given and prints what the binding makes of it, for tools/check_nvml_abi to compare: NVIDIA's own
 * libraries load on machines without a GPU and then have to say so. Not a unit test: it needs files from elsewhere. */
#include "nvml/nvml.h"

#include "base/base.h"

#include <stdio.h>

enum { TRIES = 20 };

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct err e = {0};
    struct nvml *n = nvml_open(argv[1], &e);
    if (!n) {
        printf("open %s\n", e.text);
        return 1;
    }
    printf("path %s\n", nvml_library_path(n));
    for (int i = 0; i < TRIES; i++) { /* an agent retries for ever */
        int rc = nvml_init(n);
        printf("init %d %s\n", rc, nvml_rc_name(rc));
    }
    uint32_t count = 12345;
    int rc = nvml_read_count(n, &count);
    printf("count %d %u\n", rc, count);
    printf("driver \"%s\"\n", nvml_driver_version(n));
#define X(need, name, ret, params) printf("symbol %s %d\n", #name, nvml_has_symbol(n, #name));
    NVML_SYMBOLS(X)
#undef X
    nvml_close(n);
    return 0;
}
