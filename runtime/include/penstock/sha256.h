/*===- sha256.h - The digest that ties a program to its model --------------===
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The compiler records the SHA-256 of the model file, and what a run
 * leaves behind names the model by it. Library: penstock_digests.
 *===-----------------------------------------------------------------------===*/

#ifndef PENSTOCK_SHA256_H
#define PENSTOCK_SHA256_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void penstock_sha256(const void *data, uint64_t size, uint8_t digest[32]);

/* The same, calling done(context, end) whenever some megabytes are behind it,
 * up to byte `end`: who maps a large file can give its pages back. */
void penstock_sha256_in_parts(const void *data, uint64_t size,
                              uint8_t digest[32],
                              void (*done)(void *context, uint64_t end),
                              void *context);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_SHA256_H */
