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
#include <time.h>
#include <unistd.h>

static MPI_Comm communicator = MPI_COMM_NULL;
/* By rank: whether its messages arrive alone. */
static char *arrives = NULL;
static int arrives_size = 0;

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

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

enum { TrialBytes = 1 << 20, TrialNanoseconds = 2000000 };
enum { TagBegin = 1, TagMessage, TagWoke };

/* Sends a message that no MPI sends at once, and sleeps. */
static int offer(MPI_Comm host, char *bytes) {
  const struct timespec pause = {0, TrialNanoseconds};
  char begin = 0;
  long long woke;
  MPI_Request request;
  int code = MPI_Send(&begin, 1, MPI_BYTE, 1, TagBegin, host);
  if (!code)
    code =
        MPI_Isend(bytes, TrialBytes, MPI_BYTE, 1, TagMessage, host, &request);
  if (code)
    return code;
  nanosleep(&pause, NULL);
  woke = now();
  code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  return code ? code : MPI_Send(&woke, 1, MPI_LONG_LONG, 1, TagWoke, host);
}

/* Takes it. Was it there before the other one woke? */
static int take(MPI_Comm host, char *bytes, int *is_alone) {
  char begin;
  long long woke, there;
  int is_there = 0;
  MPI_Request request;
  int code =
      MPI_Irecv(bytes, TrialBytes, MPI_BYTE, 0, TagMessage, host, &request);
  if (!code)
    code = MPI_Recv(&begin, 1, MPI_BYTE, 0, TagBegin, host, MPI_STATUS_IGNORE);
  there = now();
  for (long long end = there + TrialNanoseconds;
       !code && !is_there && there < end; there = now())
    code = MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
  if (!code)
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (!code)
    code =
        MPI_Recv(&woke, 1, MPI_LONG_LONG, 0, TagWoke, host, MPI_STATUS_IGNORE);
  *is_alone = !code && is_there && there < woke;
  return code;
}

/* Whether messages arrive while their sender calls nothing, as the first two
 * processes of `host` find out. */
static int try_alone(MPI_Comm host, int *is_alone) {
  int rank = 0, has_memory = 1, code;
  char *bytes = NULL;
  *is_alone = 0;
  MPI_Comm_rank(host, &rank);
  if (rank < 2)
    has_memory = (bytes = calloc(1, TrialBytes)) != NULL;
  code = MPI_Allreduce(MPI_IN_PLACE, &has_memory, 1, MPI_INT, MPI_MIN, host);
  if (!code && has_memory && rank < 2)
    code = rank == 0 ? offer(host, bytes) : take(host, bytes, is_alone);
  free(bytes);
  return code ? code : MPI_Bcast(is_alone, 1, MPI_INT, 1, host);
}

/* Fills in `arrives`. */
static int find_alone(void) {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Group all, here;
  int code, count = 0, is_alone = 0;
  if ((code = MPI_Comm_size(communicator, &arrives_size)) ||
      (code = MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0,
                                  MPI_INFO_NULL, &host)) ||
      (code = MPI_Comm_size(host, &count)) ||
      (count > 1 && (code = try_alone(host, &is_alone))) ||
      (code = MPI_Comm_group(communicator, &all)) ||
      (code = MPI_Comm_group(host, &here)))
    return code;
  arrives = calloc((size_t)arrives_size, 1);
  if (!arrives)
    return MPI_ERR_NO_MEM;
  for (int i = 0; i < count && !code; ++i) {
    int rank = MPI_UNDEFINED;
    code = MPI_Group_translate_ranks(here, 1, &i, all, &rank);
    if (rank != MPI_UNDEFINED)
      arrives[rank] = (char)is_alone;
  }
  MPI_Group_free(&here);
  MPI_Group_free(&all);
  MPI_Comm_free(&host);
  return code;
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
      (code = MPI_Comm_get_attr(communicator, MPI_TAG_UB, &limit, &is_set)) ||
      (code = find_alone()))
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

static int arrives_alone(int peer) {
  return peer < arrives_size && arrives[peer];
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
  static const penstock_mpi functions = {
      PENSTOCK_MPI_VERSION, start,     send,     receive, test,
      arrives_alone,        broadcast, describe, library, end};
  return &functions;
}
