//===- LinearProgram.cpp - A compiled program, written by hand ------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device functions follow what the compiler makes of a schedule: loops
// whose entries run ahead, slots in an arena, start and await of transfers.
//===----------------------------------------------------------------------===//

#include "LinearProgram.h"

#include "Kernels.h"
#include "Session.h"
#include "penstock/checksum.h"
#include "penstock/sha256.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <random>
#include <unistd.h>

using namespace penstock::test;

Faults penstock::test::faults;

namespace {

// Arena offsets. Device 0: weight, gradient, slots of x (3), h (2), dh (1).
constexpr uint64_t kW1 = 0, kG1 = 128, kX = 256, kH0 = 448, kDh0 = 576;
// Device 1: weight, gradient, slots of h (2), labels (2), z, loss, dh, counts.
constexpr uint64_t kW2 = 0, kG2 = 64, kH1 = 128, kY = 256, kZ = 384,
                   kLoss = 448, kDh1 = 512, kCorrect = 576, kCount = 584;
constexpr uint64_t kStride = 64, kArena = 640;

enum ChannelId { ChX, ChLabels, ChLoss, ChH, ChDh, ChCorrect, ChCount };
enum TaskId { F0, B0, U0, E0, F1, B1, U1, E1 };

float *at(char *base, uint64_t offset, int64_t slot = 0) {
  return reinterpret_cast<float *>(base + offset + slot * kStride);
}

/// c (m x n) = or += a (m x k) . b (k x n), by strides.
void product(const float *a, int ai, int ak, const float *b, int bk, int bj,
             float *c, int m, int n, int k, bool accumulate) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = accumulate ? c[i * n + j] : 0.0f;
      for (int l = 0; l < k; ++l)
        sum += a[i * ai + l * ak] * b[l * bk + j * bj];
      c[i * n + j] = sum;
    }
}

void forward1(const float *x, const float *w1, float *h) {
  product(x, kI, 1, w1, kH, 1, h, kB, kH, kI, false);
}
void backward1(const float *x, const float *dh, float *g1) {
  product(x, 1, kI, dh, kH, 1, g1, kI, kH, kB, true);
}
void forward2(const float *h, const float *w2, const float *y, float *z,
              float *loss) {
  product(h, kH, 1, w2, kO, 1, z, kB, kO, kH, false);
  *loss = 0;
  for (int i = 0; i < kB * kO; ++i)
    *loss += (z[i] - y[i]) * (z[i] - y[i]);
  *loss /= kB * kO;
}
void backward2(const float *h, const float *w2, const float *y, float *z,
               float *g2, float *dh) {
  for (int i = 0; i < kB * kO; ++i)
    z[i] = 2 * (z[i] - y[i]) / (kB * kO) / kM;
  product(h, 1, kH, z, kO, 1, g2, kH, kO, kB, true);
  product(z, kO, 1, w2, 1, kO, dh, kB, kH, kO, false);
}
void update(float *w, float *g, int count, const float *rate) {
  for (int i = 0; i < count; ++i) {
    if (!faults.updatesNothing)
      w[i] -= *rate * g[i];
    g[i] = 0;
  }
}
void setNumber(float *place, float value) { *place = value; }
void countRight(const float *z, const float *y, int64_t *correct,
                int64_t *count) {
  *correct = 0;
  for (int i = 0; i < kB; ++i)
    *correct += (z[2 * i] < z[2 * i + 1]) == (y[2 * i] < y[2 * i + 1]);
  *count = kB;
}
void breakLoss(int64_t k, float *loss) {
  if (k == faults.infiniteLossAt)
    *loss = std::numeric_limits<float>::infinity();
}

using Math = Kernels<forward1, backward1, forward2, backward2, update,
                     setNumber, countRight, breakLoss>;

enum ActionId {
  ForwardFirst,
  BackwardFirst,
  UpdateFirst,
  EvaluateFirst,
  ForwardSecond,
  BackwardSecond,
  UpdateSecond,
  EvaluateSecond,
  ForwardAlone,
  BackwardAlone,
  UpdateAlone
};

/// Makes the calls of an action, if the device asks for them.
template <typename Calls>
void runAction(penstock_device *device, ActionId id, int64_t key, Calls calls) {
  for (int32_t isIssued = penstock_begin(device, id, key); isIssued;
       isIssued = penstock_end(device, id))
    calls();
}

/// Puts the learning rate where the kernels of an action read it: `local` where
/// these are functions of the host.
float *placeRate(penstock_device *device, ActionId id, float rate,
                 float &local) {
  auto *place = static_cast<float *>(penstock_find_scalars(device, id));
  if (!place)
    place = &local;
  Math::run<setNumber>(device, place, rate);
  return place;
}

bool isIn(int64_t j, int64_t count) { return j >= 0 && j < count; }

void train0(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  for (int64_t t = first; t < first + updates; ++t) {
    for (int64_t j = 0; j < kM + 2; ++j) {
      if (isIn(j, kM)) {
        int64_t k = t * kM + j;
        penstock_recv(device, ChX, k, at(arena, kX, k % 3));
      }
      if (isIn(j - 1, kM)) {
        int64_t k = t * kM + j - 1;
        penstock_await(device, ChX, k);
        penstock_await(device, ChH, k - 2);
        penstock_mark(device, F0, k);
        runAction(device, ForwardFirst, k % 6, [&] {
          Math::run<forward1>(device, at(arena, kX, k % 3), at(arena, kW1),
                              at(arena, kH0, k % 2));
        });
        penstock_send(device, ChH, k, at(arena, kH0, k % 2));
      }
      if (isIn(j - 2, kM)) {
        int64_t k = t * kM + j - 2;
        penstock_recv(device, ChDh, k, at(arena, kDh0));
        penstock_await(device, ChDh, k);
        penstock_mark(device, B0, k);
        runAction(device, BackwardFirst, k % 3, [&] {
          Math::run<backward1>(device, at(arena, kX, k % 3), at(arena, kDh0),
                               at(arena, kG1));
        });
      }
    }
    penstock_mark(device, U0, t);
    float local;
    float *rate = placeRate(device, UpdateFirst,
                            float(penstock_hyperparameter(device, 0)), local);
    runAction(device, UpdateFirst, 0, [&] {
      Math::run<update>(device, at(arena, kW1), at(arena, kG1), kI * kH, rate);
    });
  }
}

void train1(penstock_device *device, int64_t first, int64_t updates, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  for (int64_t t = first; t < first + updates; ++t) {
    while (t == faults.hangAtUpdate)
      pause();
    for (int64_t j = 0; j < kM + 1; ++j) {
      if (isIn(j, kM)) {
        int64_t k = t * kM + j;
        penstock_recv(device, ChLabels, k, at(arena, kY, k % 2));
        penstock_recv(device, ChH, k, at(arena, kH1, k % 2));
      }
      if (!isIn(j - 1, kM))
        continue;
      int64_t k = t * kM + j - 1;
      float *h = at(arena, kH1, k % 2), *y = at(arena, kY, k % 2);
      penstock_await(device, ChH, k);
      penstock_await(device, ChLabels, k);
      penstock_mark(device, F1, k);
      runAction(device, ForwardSecond, k % 2, [&] {
        Math::run<forward2>(device, h, at(arena, kW2), y, at(arena, kZ),
                            at(arena, kLoss));
      });
      Math::run<breakLoss>(device, k, at(arena, kLoss));
      penstock_send(device, ChLoss, k, at(arena, kLoss));
      penstock_await(device, ChDh, k - 1);
      penstock_mark(device, B1, k);
      runAction(device, BackwardSecond, k % 2, [&] {
        Math::run<backward2>(device, h, at(arena, kW2), y, at(arena, kZ),
                             at(arena, kG2), at(arena, kDh1));
      });
      penstock_send(device, ChDh, k, at(arena, kDh1));
    }
    penstock_mark(device, U1, t);
    float local;
    float *rate = placeRate(device, UpdateSecond,
                            float(penstock_hyperparameter(device, 0)), local);
    runAction(device, UpdateSecond, 0, [&] {
      Math::run<update>(device, at(arena, kW2), at(arena, kG2), kH * kO, rate);
    });
  }
}

void evaluate0(penstock_device *device, int64_t first, int64_t count, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  for (int64_t k = first; k < first + count; ++k) {
    penstock_recv(device, ChX, k, at(arena, kX));
    penstock_await(device, ChX, k);
    penstock_await(device, ChH, k - 2);
    penstock_mark(device, E0, k);
    runAction(device, EvaluateFirst, k % 2, [&] {
      Math::run<forward1>(device, at(arena, kX), at(arena, kW1),
                          at(arena, kH0, k % 2));
    });
    penstock_send(device, ChH, k, at(arena, kH0, k % 2));
  }
}

void evaluate1(penstock_device *device, int64_t first, int64_t count, int64_t) {
  char *arena = static_cast<char *>(penstock_arena(device));
  int64_t *correct = reinterpret_cast<int64_t *>(arena + kCorrect);
  int64_t *labels = reinterpret_cast<int64_t *>(arena + kCount);
  for (int64_t k = first; k < first + count; ++k) {
    penstock_recv(device, ChLabels, k, at(arena, kY));
    penstock_recv(device, ChH, k, at(arena, kH1));
    penstock_await(device, ChLabels, k);
    penstock_await(device, ChH, k);
    penstock_mark(device, E1, k);
    runAction(device, EvaluateSecond, 0, [&] {
      Math::run<forward2>(device, at(arena, kH1), at(arena, kW2), at(arena, kY),
                          at(arena, kZ), at(arena, kLoss));
      Math::run<countRight>(device, at(arena, kZ), at(arena, kY), correct,
                            labels);
    });
    penstock_send(device, ChLoss, k, at(arena, kLoss));
    penstock_send(device, ChCorrect, k, correct);
    penstock_send(device, ChCount, k, labels);
  }
}

/// One device: forward and backward in turn, the second half of the arena for
/// what device 1 has.
void trainAlone(penstock_device *device, int64_t first, int64_t updates,
                int64_t) {
  char *low = static_cast<char *>(penstock_arena(device));
  char *high = low + kArena;
  for (int64_t t = first; t < first + updates; ++t) {
    for (int64_t k = t * kM; k < (t + 1) * kM; ++k) {
      float *x = at(low, kX), *h = at(low, kH0), *y = at(high, kY);
      penstock_recv(device, 0, k, x);
      penstock_recv(device, 1, k, y);
      penstock_await(device, 0, k);
      penstock_await(device, 1, k);
      penstock_mark(device, F0, k);
      runAction(device, ForwardAlone, 0, [&] {
        Math::run<forward1>(device, x, at(low, kW1), h);
        Math::run<forward2>(device, h, at(high, kW2), y, at(high, kZ),
                            at(high, kLoss));
      });
      Math::run<breakLoss>(device, k, at(high, kLoss));
      penstock_send(device, 2, k, at(high, kLoss));
      penstock_mark(device, B0, k);
      runAction(device, BackwardAlone, 0, [&] {
        Math::run<backward2>(device, h, at(high, kW2), y, at(high, kZ),
                             at(high, kG2), at(low, kDh0));
        Math::run<backward1>(device, x, at(low, kDh0), at(low, kG1));
      });
    }
    penstock_mark(device, U0, t);
    float rate = float(penstock_hyperparameter(device, 0));
    if (t == faults.wrongReplayAt)
      rate *= 1.5f;
    float local;
    float *place = placeRate(device, UpdateAlone, rate, local);
    runAction(device, UpdateAlone, 0, [&] {
      Math::run<update>(device, at(low, kW1), at(low, kG1), kI * kH, place);
      Math::run<update>(device, at(high, kW2), at(high, kG2), kH * kO, place);
    });
  }
}

constexpr int64_t kXShape[] = {kB, kI}, kYShape[] = {kB, kO},
                  kHShape[] = {kB, kH}, kW1Shape[] = {kI, kH},
                  kW2Shape[] = {kH, kO};
constexpr penstock_tensor kScalar = {PENSTOCK_F32, 0, nullptr, 4};
constexpr penstock_tensor kInteger = {PENSTOCK_I64, 0, nullptr, 8};

penstock_tensor matrix(const int64_t *shape) {
  return {PENSTOCK_F32, 2, shape, uint64_t(shape[0] * shape[1] * 4)};
}

constexpr penstock_task kTasks[] = {{"s0.F", 'F', 0, 0}, {"s0.B", 'B', 0, 0},
                                    {"s0.U", 'U', 0, 0}, {"s0.E", 'E', 0, 0},
                                    {"s1.F", 'F', 1, 1}, {"s1.B", 'B', 1, 1},
                                    {"s1.U", 'U', 1, 1}, {"s1.E", 'E', 1, 1}};
/// Names, ways of the rings, numbers.
constexpr penstock_action kActions[] = {
    {"s0.F", 6, 0}, {"s0.B", 3, 0}, {"s0.U", 1, 1},    {"s0.E", 2, 0},
    {"s1.F", 2, 0}, {"s1.B", 2, 0}, {"s1.U", 1, 1},    {"s1.E", 1, 0},
    {"F", 1, 0},    {"B", 1, 0},    {"replay.U", 1, 1}};
constexpr uint32_t kReplicas[] = {1, 1};
constexpr penstock_hyperparameter_descriptor kKnobs[] = {{"lr", 0.05},
                                                         {"seed", 7}};
constexpr penstock_device_function kTrain[] = {train0, train1},
                                   kEvaluate[] = {evaluate0, evaluate1},
                                   kAlone[] = {trainAlone};
constexpr penstock_schedule kSchedules[] = {
    {PENSTOCK_SCHEDULE_TRAIN, kM, 0.2, kTrain},
    {PENSTOCK_SCHEDULE_EVALUATE, 1, 0.0, kEvaluate}};
constexpr penstock_schedule kReplaySchedules[] = {
    {PENSTOCK_SCHEDULE_TRAIN, kM, 0.0, kAlone}};
constexpr penstock_placement kPlaceW1 = {0, kW1, 128}, kPlaceW2 = {1, kW2, 64},
                             kPlaceG1 = {0, kG1, 128},
                             kAloneW2 = {0, kArena + kW2, 64};

/// A variable that starts at zero, with one version in one place.
penstock_variable onePlace(const char *name, uint32_t role, uint32_t stage,
                           const int64_t *shape,
                           const penstock_placement *placement) {
  penstock_variable variable = {};
  variable.name = name;
  variable.kind = "";
  variable.role = role;
  variable.stage = stage;
  variable.type = matrix(shape);
  variable.file = -1;
  variable.versions = variable.version_step = 1;
  variable.placement_count = 1;
  variable.placements = placement;
  variable.rate_scale = 1;
  return variable;
}

} // namespace

void LinearProgram::writeModel(const std::string &folder, Weights weights) {
  auto bytesOf = [](const std::vector<float> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()),
                       4 * values.size());
  };
  auto external = [](const char *offset, const char *length) {
    auto entry = [](const char *key, const char *value) {
      return bytesField(13, bytesField(1, key) + bytesField(2, value));
    };
    return entry("location", "linear.data") + entry("offset", offset) +
           entry("length", length) + varintField(14, 1);
  };
  std::string raw1 = bytesOf(w1), raw2 = bytesOf(w2), first, second;
  first = varintField(1, kI) + varintField(1, kH) + varintField(2, 1);
  second = varintField(1, kH) + varintField(1, kO) + varintField(2, 1);
  if (weights == Weights::Inline) {
    first += bytesField(8, "w1") + bytesField(9, raw1);  // raw_data
    second += bytesField(4, raw2) + bytesField(8, "w2"); // float_data
  } else {
    weightsText = "padding!" + raw1 + raw2 + "rest";
    weightsPath = folder + "/linear.data";
    writeText(weightsPath, weightsText);
    indicesPath = folder + "/more/indices.data";
    std::filesystem::create_directory(folder + "/more");
    writeText(indicesPath, indicesText);
    first += bytesField(8, "w1") + external("8", "80");
    second += bytesField(8, "w2") + external("88", "40");
  }
  std::string node =
      bytesField(1, "x") + bytesField(2, "z") + bytesField(4, "MatMul") +
      bytesField(5,
                 bytesField(1, "value") + bytesField(5, bytesField(9, raw1)));
  modelText = varintField(1, 8) + bytesField(2, "test") +
              bytesField(7, bytesField(1, node) + bytesField(2, "linear") +
                                bytesField(5, first) + bytesField(5, second)) +
              bytesField(8, varintField(2, 17));
  modelPath = folder + "/linear.onnx";
  writeText(modelPath, modelText);
  const std::string &home =
      weights == Weights::Inline ? modelText : weightsText;
  // The first occurrence of w1 in the model is the node's attribute.
  w1Offset = home.rfind(raw1);
  w2Offset = home.rfind(raw2);
}

void LinearProgram::writeData(const std::string &folder) {
  dataPath = folder + "/x.npy";
  labelsPath = folder + "/y.npy";
  writeNpy(dataPath, "<f4", {kSamples, kI}, x);
  writeNpy(labelsPath, "<f4", {kSamples, kO}, y);
}

LinearProgram::LinearProgram(const std::string &folder, Weights weights) {
  faults = {};
  std::mt19937 random(5);
  auto fill = [&](std::vector<float> &values, size_t count) {
    values.resize(count);
    for (float &value : values)
      value = float(random() % 2001) / 1000.0f - 1.0f;
  };
  fill(w1, kI * kH);
  fill(w2, kH * kO);
  fill(x, kSamples * kI);
  fill(y, kSamples * kO);
  writeModel(folder, weights);
  writeData(folder);

  penstock_file model = {modelPath.c_str(), modelText.size(), {}, {}};
  penstock_sha256(modelText.data(), modelText.size(), model.digest);
  std::ranges::copy(runtime::getChecksum(modelText.data(), modelText.size()),
                    model.checksum);
  files.push_back(model);
  int32_t file = weights == Weights::External;
  if (weights == Weights::External) {
    files.push_back({weightsPath.c_str(), weightsText.size(), {}, {}});
    files.push_back({indicesPath.c_str(), indicesText.size(), {}, {}});
  }
  variables = {
      onePlace("w1", PENSTOCK_ROLE_PARAMETER, 0, kW1Shape, &kPlaceW1),
      onePlace("w2", PENSTOCK_ROLE_PARAMETER, 1, kW2Shape, &kPlaceW2),
      onePlace("w1.grad", PENSTOCK_ROLE_GRADIENT, 0, kW1Shape, &kPlaceG1)};
  variables[1].of = 1;
  variables[0].file = variables[1].file = file;
  variables[0].file_offset = w1Offset;
  variables[1].file_offset = w2Offset;
  replayVariables = {variables[2], variables[1], variables[0]};
  replayVariables[0].of = 2;
  replayVariables[2].of = 2;
  replayVariables[1].placements = &kAloneW2;
  channels = {
      {"x", PENSTOCK_CHANNEL_INPUT, "x", matrix(kXShape), -1, 0, 3, 0, 1, 0, 0,
       -1},
      {"labels", PENSTOCK_CHANNEL_LABELS, "labels", matrix(kYShape), -1, 1, 2,
       0, 1, 0, 0, -1},
      {"loss", PENSTOCK_CHANNEL_LOSS, nullptr, kScalar, 1, -1, 0, 1, 1, 0, 0,
       1},
      {"h", PENSTOCK_CHANNEL_TRANSFER, nullptr, matrix(kHShape), 0, 1, 2, 0, 1,
       0, 0, 0},
      {"dh", PENSTOCK_CHANNEL_TRANSFER, nullptr, matrix(kHShape), 1, 0, 1, 1, 1,
       0, 0, -1},
      {"correct", PENSTOCK_CHANNEL_CORRECT, nullptr, kInteger, 1, -1, 0, 1, 1,
       0, 0, -1},
      {"count", PENSTOCK_CHANNEL_COUNT, nullptr, kInteger, 1, -1, 0, 1, 1, 0, 0,
       -1},
  };
  replayChannels = {channels[0], channels[1], channels[2]};
  replayChannels[1].receiver = 0;
  replayChannels[2].sender = 0;

  devices = {{kArena, 64, 1, placement.first, "any", "+sse2"},
             {kArena, 64, 1, placement.second, "any", "+sse2"}};
  replayDevices = {{2 * kArena, 64, 1, placement.alone, "any", "+sse2"}};

  replay = makeProgram(replayDevices, kReplaySchedules);
  replay.stage_count = 2;
  replay.microbatch_size = kB;
  replay.method = "sync";
  replay.schedule = "replay";
  replay.plan = "{}";
  set(replay.file_count, replay.files, files);
  set(replay.variable_count, replay.variables, replayVariables);
  set(replay.channel_count, replay.channels, replayChannels);
  set(replay.task_count, replay.tasks, kTasks);
  set(replay.hyperparameter_count, replay.hyperparameters, kKnobs);
  set(replay.action_count, replay.actions, kActions);
  Math::addTo(replay);

  program = replay;
  program.schedule = "1f1b";
  program.optimizer = "sgd:lr=0.1";
  program.precision = PENSTOCK_F32;
  program.replicas = kReplicas;
  program.plan = "{\"model\": \"linear\"}";
  set(program.device_count, program.devices, devices);
  set(program.variable_count, program.variables, variables);
  set(program.channel_count, program.channels, channels);
  set(program.schedule_count, program.schedules, kSchedules);
  program.replay = &replay;
}

std::vector<float> LinearProgram::trainSerially(int64_t updates, float rate,
                                                std::vector<float> &w1,
                                                std::vector<float> &w2) const {
  std::vector<float> losses, g1(w1.size()), g2(w2.size());
  int64_t usable = kSamples / (kB * kM) * (kB * kM);
  for (int64_t t = 0; t < updates; ++t) {
    for (int64_t k = t * kM; k < (t + 1) * kM; ++k) {
      int64_t sample = k * kB % usable;
      float h[kB * kH], z[kB * kO], dh[kB * kH], loss;
      forward1(&x[sample * kI], w1.data(), h);
      forward2(h, w2.data(), &y[sample * kO], z, &loss);
      losses.push_back(loss);
      backward2(h, w2.data(), &y[sample * kO], z, g2.data(), dh);
      backward1(&x[sample * kI], dh, g1.data());
    }
    update(w1.data(), g1.data(), kI * kH, &rate);
    update(w2.data(), g2.data(), kH * kO, &rate);
  }
  return losses;
}
