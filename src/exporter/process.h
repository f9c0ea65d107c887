/* What /proc says of this process; private to exporter. */
#ifndef EXPORTER_PROCESS_H
#define EXPORTER_PROCESS_H

/* NaN where /proc does not say. */
struct process_stats {
    double cpu_seconds, resident_bytes, virtual_bytes, open_fds, max_fds;
};
void process_read(struct process_stats *ret);

#endif
