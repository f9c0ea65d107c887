/* base: what every module stands on. Errors, memory, text, numbers, time, files, JSON output and metrics.
 * It depends on libc alone, never logs and never exits (except on out-of-memory and failed assertions). */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/ip.h"
#include "base/json.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"

#endif
