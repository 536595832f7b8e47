/*===- embedded.h - Files at the end of an executable -----------------------===
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * penstockc --embed-weights appends files to an executable, which the runtime
 * maps: each begins at a multiple of PENSTOCK_EMBEDDED_ALIGNMENT. Behind them
 * are the entries, and last the footer. Numbers are little-endian.
 *===-----------------------------------------------------------------------===*/

#ifndef PENSTOCK_EMBEDDED_H
#define PENSTOCK_EMBEDDED_H

#include <stdint.h>

#define PENSTOCK_EMBEDDED_ALIGNMENT 65536u
#define PENSTOCK_EMBEDDED_MAGIC "penstock-files-1"

/* Of penstock_program.files, in their order. */
typedef struct {
  uint64_t offset;
  uint64_t size;
} penstock_embedded_file;

typedef struct {
  uint64_t offset; /* of the first entry */
  uint64_t count;
  char magic[16];
} penstock_embedded_footer;

#endif /* PENSTOCK_EMBEDDED_H */
