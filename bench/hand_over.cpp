//===- hand_over.cpp - Messages and sums of the runtime beside raw MPI ----===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of two devices, written by hand, that calls MPI itself between its
// transfers: so both sides are measured in turn, in the same processes and from
// the same buffers. bench/processes.py compiles it with the MPI of the machine,
// and starts it as two processes:
//
//   mpirun -n 2 hand_over --steps 1 hand-over|overlap|sum  (by PENSTOCK_BENCH)
//
// Device 0 prints a line of JSON for each measurement.
//===----------------------------------------------------------------------===//

#include "penstock/abi.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <string_view>

namespace {

constexpr uint64_t kSizes[] = {8, 1 << 10, 64 << 10, 512 << 10, 4 << 20};
constexpr int kSizeCount = std::size(kSizes), kRounds = 24, kTag = 20000;
constexpr uint64_t kLargest = 4 << 20, kSum = 64 << 20;
constexpr uint64_t kArena = 2 * kLargest + 2 * kSum;
/// There, back, by size; then the loss.
constexpr uint32_t kLoss = 2 * kSizeCount, kChannels = kLoss + 1;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void work(double seconds) {
  for (double end = now() + seconds; now() < end;)
    ;
}

struct Place {
  penstock_device *device;
  int rank;
  char *arena;
  int64_t numbers[kSizeCount] = {};

  char *out() const { return arena; }
  char *in() const { return arena + kLargest; }
  float *sum(int i) const {
    return reinterpret_cast<float *>(arena + 2 * kLargest + i * kSum);
  }
};

void send(Place &place, int size, int64_t n) {
  std::memcpy(place.out(), &n, sizeof(n));
  penstock_send(place.device, 2 * size + place.rank, n, place.out());
}

void receive(Place &place, int size, int64_t n) {
  penstock_recv(place.device, 2 * size + 1 - place.rank, n, place.in());
}

/// Also of what this side has sent before.
void await(Place &place, int size, int64_t n) {
  penstock_await(place.device, 2 * size + 1 - place.rank, n);
  if (std::memcmp(place.in(), &n, sizeof(n)) != 0) {
    std::fprintf(stderr, "hand_over: message %lld has other bytes\n",
                 static_cast<long long>(n));
    std::abort();
  }
}

void exchange(Place &place, int size) {
  int64_t n = place.numbers[size]++;
  if (place.rank == 0)
    send(place, size, n);
  receive(place, size, n);
  await(place, size, n);
  if (place.rank == 1)
    send(place, size, n);
}

void exchangeRaw(Place &place, uint64_t bytes) {
  int peer = 1 - place.rank;
  if (place.rank == 0)
    MPI_Send(place.out(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
  MPI_Recv(place.in(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  if (place.rank == 1)
    MPI_Send(place.out(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
}

template <typename Body> double measure(int count, Body body) {
  double begin = now();
  for (int i = 0; i < count; ++i)
    body();
  return (now() - begin) / count;
}

void measureHandOver(Place &place) {
  for (int size = 0; size < kSizeCount; ++size) {
    uint64_t bytes = kSizes[size];
    int count = int(std::clamp<uint64_t>((16 << 20) / bytes, 20, 4000));
    double raw = 1, ours = 1;
    for (int round = 0; round < kRounds; ++round) {
      raw = std::min(raw, measure(count, [&] { exchangeRaw(place, bytes); }));
      ours = std::min(ours, measure(count, [&] { exchange(place, size); }));
    }
    if (place.rank == 0)
      std::printf("{\"bytes\": %llu, \"raw\": %.4g, \"ours\": %.4g}\n",
                  static_cast<unsigned long long>(bytes), raw / 2, ours / 2);
  }
}

/// Returns the larger wait of both sides, after work longer than the transfer.
void measureOverlap(Place &place) {
  constexpr int size = kSizeCount - 1;
  constexpr double kWork = 3e-3;
  double least = 1, without = 1;
  for (int round = 0; round < 60; ++round) {
    exchange(place, 0);
    int64_t n = place.numbers[size]++;
    if (place.rank == 0)
      send(place, size, n);
    else
      receive(place, size, n);
    work(kWork);
    double begin = now();
    if (place.rank == 0)
      penstock_await(place.device, 2 * size, n);
    else
      await(place, size, n);
    double wait = now() - begin, other = 0;
    MPI_Sendrecv(&wait, 1, MPI_DOUBLE, 1 - place.rank, kTag, &other, 1,
                 MPI_DOUBLE, 1 - place.rank, kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    least = std::min(least, std::max(wait, other));

    // The same by MPI alone: nobody moves the message during the work.
    MPI_Request request;
    if (place.rank == 0)
      MPI_Isend(place.out(), kLargest, MPI_BYTE, 1, kTag, MPI_COMM_WORLD,
                &request);
    else
      MPI_Irecv(place.in(), kLargest, MPI_BYTE, 0, kTag, MPI_COMM_WORLD,
                &request);
    work(kWork);
    begin = now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wait = now() - begin;
    MPI_Sendrecv(&wait, 1, MPI_DOUBLE, 1 - place.rank, kTag, &other, 1,
                 MPI_DOUBLE, 1 - place.rank, kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    without = std::min(without, std::max(wait, other));
  }
  if (place.rank == 0)
    std::printf("{\"bytes\": %llu, \"wait\": %.4g, \"without\": %.4g}\n",
                static_cast<unsigned long long>(kLargest), least, without);
}

void measureSum(Place &place) {
  constexpr uint64_t count = kSum / sizeof(float);
  double raw = 1e9, ours = 1e9, hidden = 1e9, waited = 1e9;
  float *cell = place.sum(0), *other = place.sum(1);
  auto fill = [&] { std::fill_n(cell, count, 1.0f + place.rank); };
  auto check = [&](const float *values) {
    for (uint64_t i = 0; i < count; i += 4093)
      if (values[i] != 3.0f) {
        std::fprintf(stderr, "hand_over: a sum is %g\n", values[i]);
        std::abort();
      }
  };
  fill();
  std::fill_n(other, count, 0.0f);
  int64_t t = 0;
  for (int round = 0; round < 12; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    raw = std::min(raw, measure(1, [&] {
                     MPI_Allreduce(cell, other, count, MPI_FLOAT, MPI_SUM,
                                   MPI_COMM_WORLD);
                   }));
    check(other);
    void *cells[] = {cell};
    auto sum = [&](double seconds) {
      MPI_Barrier(MPI_COMM_WORLD);
      penstock_all_reduce(place.device, 0, t, cells);
      work(seconds);
      double begin = now();
      penstock_await(place.device, kChannels, t++);
      waited = now() - begin;
      check(cell);
      fill();
    };
    ours = std::min(ours, measure(1, [&] {
                      penstock_all_reduce(place.device, 0, t, cells);
                      penstock_await(place.device, kChannels, t++);
                    }));
    check(cell);
    fill();
    sum(0.2);
    hidden = std::min(hidden, waited);
  }
  if (place.rank == 0)
    std::printf("{\"bytes\": %llu, \"raw\": %.4g, \"ours\": %.4g, "
                "\"hidden\": %.4g}\n",
                static_cast<unsigned long long>(kSum), raw, ours, hidden);
}

template <int rank>
void train(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  Place place = {device, rank, static_cast<char *>(penstock_arena(device))};
  const char *name = std::getenv("PENSTOCK_BENCH");
  std::string_view mode = name ? name : "hand-over";
  if (mode == "sum")
    measureSum(place);
  else if (mode == "overlap")
    measureOverlap(place);
  else
    measureHandOver(place);
  std::fflush(stdout);
  for (int64_t t = first; t < first + updates; ++t) {
    penstock_mark(device, rank, t);
    // Nobody has waited for what this side sent last.
    char *loss = place.in();
    std::memset(loss, 0, sizeof(float));
    if (rank == 1)
      penstock_send(device, kLoss, t, loss);
  }
}

constexpr int64_t kShapes[][1] = {{8 / 4},          {(1 << 10) / 4},
                                  {(64 << 10) / 4}, {(512 << 10) / 4},
                                  {(4 << 20) / 4},  {(64 << 20) / 4}};

#define PAIR(i)                                                                \
  {"there", PENSTOCK_CHANNEL_TRANSFER,                                         \
   nullptr, {PENSTOCK_F32, 1, kShapes[i], kSizes[i]},                          \
   0,       1,                                                                 \
   1,       0,                                                                 \
   1,       0,                                                                 \
   0},                                                                         \
      {"back",  PENSTOCK_CHANNEL_TRANSFER,                                     \
       nullptr, {PENSTOCK_F32, 1, kShapes[i], kSizes[i]},                      \
       1,       0,                                                             \
       1,       0,                                                             \
       1,       0,                                                             \
       0}
constexpr penstock_channel channels[kChannels] = {
    PAIR(0),
    PAIR(1),
    PAIR(2),
    PAIR(3),
    PAIR(4),
    {"loss",
     PENSTOCK_CHANNEL_LOSS,
     nullptr,
     {PENSTOCK_F32, 0, nullptr, 4},
     1,
     -1,
     0,
     1,
     1,
     0,
     0}};
constexpr penstock_tensor summed[] = {{PENSTOCK_F32, 1, kShapes[5], kSum}};
constexpr uint32_t summands[] = {0, 1},
                   adds[] = {PENSTOCK_SUM_ADDS, PENSTOCK_SUM_ADDS};
constexpr penstock_group groups[] = {{"sum", 1, summed, 2, summands, adds}};
constexpr penstock_task tasks[] = {{"there", 'U', 0, 0}, {"back", 'U', 1, 1}};
constexpr penstock_device_descriptor devices[] = {
    {kArena, 64, 1, "cpu", "any", ""}, {kArena, 64, 1, "cpu", "any", ""}};
constexpr penstock_device_function functions[] = {train<0>, train<1>};
constexpr penstock_schedule schedules[] = {
    {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions}};

constexpr penstock_program makeProgram() {
  penstock_program program = {};
  program.abi_version = PENSTOCK_ABI_VERSION;
  program.stage_count = 2;
  program.microbatch_size = 1;
  program.method = "sync";
  program.optimizer = program.schedule = program.plan = "";
  program.device_count = 2;
  program.devices = devices;
  program.channel_count = kChannels;
  program.channels = channels;
  program.task_count = 2;
  program.tasks = tasks;
  program.group_count = 1;
  program.groups = groups;
  program.schedule_count = 1;
  program.schedules = schedules;
  return program;
}

} // namespace

extern "C" {
extern const penstock_program model __asm__("penstock_program");
const penstock_program model = makeProgram();
}
