/*===- Shim.h - What the runtime asks of an MPI -------------------*- C -*-===*
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Implementations of MPI differ in their binary interface. Shim.c is compiled
 * once for each of them, and an executable loads the one that it was started
 * by. No type of MPI is here.
 *===----------------------------------------------------------------------===*/

#ifndef PENSTOCK_RUNTIME_TRANSPORT_MPI_SHIM_H
#define PENSTOCK_RUNTIME_TRANSPORT_MPI_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_MPI_VERSION 2u

/* Room for a request of any MPI. */
typedef struct {
  uint64_t words[2];
} penstock_mpi_request;

/* Functions that return int return 0, or a code for `describe`. They are called
 * by one thread at a time, whichever it is. */
typedef struct {
  uint32_t version;
  int (*init)(int *rank, int *size, int *is_serialized, int *largest_tag);
  /* At most 1 GiB at a time. */
  int (*send)(const void *bytes, uint64_t size, int peer, int tag,
              penstock_mpi_request *request);
  int (*receive)(void *bytes, uint64_t size, int peer, int tag,
                 penstock_mpi_request *request);
  int (*test)(penstock_mpi_request *request, int *is_done);
  /* True if messages to and from `peer` arrive while their sender calls
   * nothing: whoever receives copies them. By a trial between two processes of
   * this host; false for other hosts. */
  int (*arrives_alone)(int peer);
  /* From rank 0 to all. */
  int (*broadcast)(void *bytes, uint64_t size);
  const char *(*describe)(int code);
  const char *(*library)(void);
  int (*finalize)(void);
} penstock_mpi;

/* What a shim exports, and a pointer to it. */
const penstock_mpi *penstock_mpi_load(void);
typedef const penstock_mpi *(*penstock_mpi_load_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_RUNTIME_TRANSPORT_MPI_SHIM_H */
