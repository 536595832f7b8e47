/*===- Plugin.c - The order of cores, by hwloc ---------------------------===*\
|*
|* Part of the Penstock project, under the Apache License v2.0 with LLVM
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* libpenstock-topology.so, which programs load where it is there. hwloc numbers
|* processing units so that those that share a core, a cache, a NUMA node or a
|* package are next to each other; the system's numbers need not.
|*
\*===----------------------------------------------------------------------===*/

#include "runtime/job/topology/Plugin.h"

#include <hwloc.h>

int penstock_order_cores(int32_t *cores, uint32_t count) {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0)
    return 0;
  /* All units of the host, also those that this process may not use. */
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    return 0;
  }
  uint32_t done = 0;
  hwloc_obj_t unit = NULL;
  while ((unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)))
    for (uint32_t i = done; i < count; ++i)
      if (cores[i] == (int32_t)unit->os_index) {
        /* What it is exchanged with finds its place later. */
        cores[i] = cores[done];
        cores[done++] = (int32_t)unit->os_index;
        break;
      }
  hwloc_topology_destroy(topology);
  return done == count;
}
