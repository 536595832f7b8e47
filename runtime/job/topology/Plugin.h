/*===- Plugin.h - The order of cores, by hwloc ---------------------------===*\
|*
|* Part of the Penstock project, under the Apache License v2.0 with LLVM
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* What libpenstock-topology.so exports.
|*
\*===----------------------------------------------------------------------===*/

#ifndef PENSTOCK_RUNTIME_JOB_TOPOLOGY_PLUGIN_H
#define PENSTOCK_RUNTIME_JOB_TOPOLOGY_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Orders the numbers of cores; returns 1, or 0 where not all of them are known,
 * in any order then. */
int penstock_order_cores(int32_t *cores, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_RUNTIME_JOB_TOPOLOGY_PLUGIN_H */
