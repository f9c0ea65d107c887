/* What a bench takes itself: memory and CPU time of its own process. */
#ifndef BENCH_SELF_H
#define BENCH_SELF_H

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Of this process's own memory, in kB; what the kernel holds for its sockets is not in it. */
static inline double private_kb(void)
{
    char line[128];
    double kb = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        struct str rest = str_of(line);
        if (!str_has_prefix(rest, "Private_Dirty:"))
            continue;
        (void)str_cut(&rest, ':');
        rest = str_trim(rest);
        if (num_parse_double(str_cut(&rest, ' '), &kb) < 0)
            break;
    }
    if (file)
        (void)fclose(file);
    return kb;
}

/* Of this process. */
static inline double cpu_s(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* Of this thread. */
static inline double cpu_us(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
        abort();
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#endif
