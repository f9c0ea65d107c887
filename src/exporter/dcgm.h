/* The families that dcgm-exporter gives, under its names, units and labels, as far as NVML measures them; private to
 * exporter. */
#ifndef EXPORTER_DCGM_H
#define EXPORTER_DCGM_H

#include "exporter/exporter.h"

/* Append the families; a value that is unknown or too old has no line. view->snapshot must be there; node_name "" is
 * unknown. */
void dcgm_render(struct promtext *text, const struct exporter_view *view, const char *node_name);

#endif
