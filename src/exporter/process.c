/* What /proc says of this process: a few microseconds, no disk. */
#include "exporter/process.h"

#include "base/base.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void read_memory(struct process_stats *ret)
{
    BUF_AUTO struct buf text;
    buf_init(&text, 4096);
    double pages[2];
    if (file_read("/proc/self/statm", &text, NULL) < 0)
        return;
    struct str rest = {text.data ? text.data : "", text.len};
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (!rest.ptr || num_parse_double(str_cut(&rest, ' '), &pages[i]) < 0)
            return;
    double page = (double)sysconf(_SC_PAGESIZE);
    ret->virtual_bytes = pages[0] * page;
    ret->resident_bytes = pages[1] * page;
}

static double count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return (double)NAN;
    double n = -1; /* the directory's own */
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

void process_read(struct process_stats *ret)
{
    const double unknown = (double)NAN;
    *ret = (struct process_stats){unknown, unknown, unknown, unknown, unknown};
    struct rusage usage;
    struct rlimit limit;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        ret->cpu_seconds = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        ret->max_fds = (double)limit.rlim_cur;
    read_memory(ret);
    ret->open_fds = count_fds();
}
