/*===- Shim.c - What the runtime asks of an MPI -----------------------------===
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * See Shim.h. Everything happens in a communicator of our own, whose errors
 * return.
 *===----------------------------------------------------------------------===*/

/* process_vm_readv */
#define _GNU_SOURCE

#include "Shim.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static MPI_Comm communicator = MPI_COMM_NULL;

_Static_assert(sizeof(MPI_Request) <= sizeof(penstock_mpi_request),
               "the room for a request");

/* memcpy, as the room has another type. */
static MPI_Request load(const penstock_mpi_request *from) {
  MPI_Request request;
  memcpy(&request, from, sizeof(request));
  return request;
}
static void store(penstock_mpi_request *to, MPI_Request request) {
  memcpy(to, &request, sizeof(request));
}

static int can_copy_between_processes(void) {
  char from = 1, to = 0;
  struct iovec source = {&from, 1}, target = {&to, 1};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1;
}

static int start(int *rank, int *size, int *is_serialized, int *largest_tag) {
  int level = 0, code, is_set = 0;
  int *limit = NULL;
  /* One copy by the kernel needs no help of the sender, which computes. Where
   * it is forbidden, as in many containers, Open MPI only finds out when it
   * fails. */
  if (!can_copy_between_processes())
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  if ((code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level)))
    return code;
  *is_serialized = level >= MPI_THREAD_SERIALIZED;
  if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator)) ||
      (code = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN)) ||
      (code = MPI_Comm_rank(communicator, rank)) ||
      (code = MPI_Comm_size(communicator, size)) ||
      (code = MPI_Comm_get_attr(communicator, MPI_TAG_UB, &limit, &is_set)))
    return code;
  *largest_tag = is_set ? *limit : 32767;
  return MPI_SUCCESS;
}

static int send(const void *bytes, uint64_t size, int peer, int tag,
                penstock_mpi_request *to) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code =
      MPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, communicator, &request);
  store(to, request);
  return code;
}

static int receive(void *bytes, uint64_t size, int peer, int tag,
                   penstock_mpi_request *to) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code =
      MPI_Irecv(bytes, (int)size, MPI_BYTE, peer, tag, communicator, &request);
  store(to, request);
  return code;
}

static int test(penstock_mpi_request *at, int *is_done) {
  MPI_Request request = load(at);
  MPI_Status status;
  int code = MPI_Test(&request, is_done, &status);
  store(at, request);
  return code;
}

static int broadcast(void *bytes, uint64_t size) {
  return MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, communicator);
}

static const char *describe(int code) {
  static char text[MPI_MAX_ERROR_STRING + 1];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
    snprintf(text, sizeof(text), "error %d", code);
  return text;
}

/* The first line, without what follows a comma: "Open MPI v4.1.4". */
static const char *library(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
    return "an unknown MPI";
  text[strcspn(text, ",\n")] = 0;
  for (char *at = text; *at; ++at)
    if (*at == '\t')
      *at = ' ';
  return text;
}

static int end(void) {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (is_over)
    return MPI_SUCCESS;
  MPI_Comm_free(&communicator);
  return MPI_Finalize();
}

const penstock_mpi *penstock_mpi_load(void) {
  static const penstock_mpi functions = {PENSTOCK_MPI_VERSION,
                                         start,
                                         send,
                                         receive,
                                         test,
                                         broadcast,
                                         describe,
                                         library,
                                         end};
  return &functions;
}
