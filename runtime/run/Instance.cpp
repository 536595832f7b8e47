//===- Instance.cpp - One opened program ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening: check the descriptor, start the device threads, let each allocate
// its arena, read initial values and prepare its library calls. Then segments.
//===----------------------------------------------------------------------===//

#include "runtime/run/Instance.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unistd.h>

using namespace penstock::runtime;

/// Whether what library calls have besides their operands lies in the arena.
static bool holdsLibraryScratch(const penstock_program &program,
                                uint32_t device) {
  auto isInside = [&](const auto &call) {
    return !isCalledOn(call, device) || !call.scratch.offsets ||
           call.scratch.offsets[device] + call.scratch.bytes <=
               program.devices[device].arena_bytes;
  };
  return std::all_of(program.gemms, program.gemms + program.gemm_count,
                     isInside) &&
         std::all_of(program.convs, program.convs + program.conv_count,
                     isInside);
}

Instance::Instance(const penstock_program &program)
    : program(program), positions{program, {}} {
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    hyperparameters.push_back(program.hyperparameters[i].value);
  integers.resize(program.hyperparameter_count);
}

Instance::~Instance() {
  if (sourceThread.joinable()) {
    isSourceStopping.store(true);
    sourceRequests.bump(/*wake=*/true);
    sourceThread.join();
  }
  // Library objects are destroyed where they were used.
  for (auto &device : deviceList)
    device->worker->start([&device] {
      device->gemms.clear();
      device->convs.clear();
    });
  for (auto &device : deviceList)
    device->worker->wait(-1);
}

Error Instance::check() const {
  // 1. Channels: the sinks are those that something reads.
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    bool isOutput = channel.role == PENSTOCK_CHANNEL_OUTPUT;
    if (!isSink(channel) || (isOutput && infers(program)))
      continue;
    uint32_t element =
        channel.role == PENSTOCK_CHANNEL_LOSS ? PENSTOCK_F32 : PENSTOCK_I64;
    if (isOutput || channel.role > PENSTOCK_CHANNEL_OUTPUT ||
        channel.type.element != element ||
        channel.type.bytes != elementBytes(element))
      return defect("channel '%s': this runtime knows no sink of role %u and "
                    "type %s",
                    channel.name, channel.role,
                    elementName(channel.type.element));
  }

  for (uint32_t i = 0; i < program.group_count; ++i)
    if (!AllReduce::canSum(program.groups[i]))
      return defect("group '%s' has values that this runtime cannot add",
                    program.groups[i].name);

  // 2. Variables and library scratch lie inside their arenas.
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    for (uint32_t j = 0; j < variable.placement_count; ++j) {
      const penstock_placement &place = variable.placements[j];
      uint64_t end =
          place.offset +
          uint64_t(std::max(variable.versions, 1u) - 1) * place.stride +
          variable.type.bytes;
      if (place.device >= program.device_count ||
          end > program.devices[place.device].arena_bytes)
        return defect("variable '%s' does not lie in an arena", variable.name);
    }
    if (variable.placement_count == 0)
      return defect("variable '%s' has no place", variable.name);
    if (variable.role == PENSTOCK_ROLE_PREPACKED &&
        (variable.prepacked_from >= program.variable_count ||
         variable.prepacked_by >= program.conv_count + program.gemm_count))
      return defect("variable '%s' has no weights, or nothing that prepacks",
                    variable.name);
    if (variable.file >= int32_t(program.file_count))
      return defect("variable '%s' names no file", variable.name);
  }
  uint64_t total = 0;
  for (uint32_t i = 0; i < program.device_count; ++i) {
    const penstock_device_descriptor &device = program.devices[i];
    total += device.arena_bytes;
    if (!holdsLibraryScratch(program, i))
      return defect("device %u: library scratch does not lie in the arena", i);
  }
  uint64_t memory =
      uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (total > memory)
    return doesNotFit("%u devices need %llu bytes together, %llu more than "
                      "this machine has",
                      program.device_count, (unsigned long long)total,
                      (unsigned long long)(total - memory));
  return {};
}

void Instance::buildEndpoints() {
  endpoints.resize(program.channel_count);
  sourceNext.resize(program.channel_count);
  bool needsThread = false;
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &description = program.channels[i];
    Endpoint &endpoint = endpoints[i];
    endpoint.channel = std::make_unique<Channel>(description, i);
    endpoint.isSource = isSource(description);
    if (isSink(description))
      endpoint.sink = std::make_unique<SinkRing>();
    needsThread |=
        endpoint.isSource && description.type.bytes >= kSourceThreadBytes;
  }
  for (uint32_t i = 0; i < program.group_count; ++i)
    sums.push_back(std::make_unique<AllReduce>(program.groups[i]));
  // A device may have as many transfers on their way as its channels hold, and
  // one sum of each group.
  for (auto &device : deviceList) {
    uint64_t size = 1 + program.group_count;
    for (const Endpoint &endpoint : endpoints)
      if (!endpoint.isSource && !endpoint.sink)
        size += uint64_t(2) * endpoint.channel->capacity();
    device->transfers.resize(std::bit_ceil(size));
    device->transferMask = device->transfers.size() - 1;
  }
  if (needsThread)
    sourceThread = std::thread([this] { sourceLoop(); });
}

/// Where weights lie on a device, and those that are prepacked from them.
Error Instance::prepackWeights(penstock_device &device) {
  auto find = [&](const penstock_variable &variable) -> char * {
    for (uint32_t j = 0; j < variable.placement_count; ++j)
      if (variable.placements[j].device == device.index)
        return device.arena.base() + variable.placements[j].offset;
    return nullptr;
  };
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    char *result =
        variable.role == PENSTOCK_ROLE_PREPACKED ? find(variable) : nullptr;
    if (!result)
      continue;
    uint32_t by = variable.prepacked_by;
    auto *weights = reinterpret_cast<float *>(
        find(program.variables[variable.prepacked_from]));
    auto *to = reinterpret_cast<float *>(result);
    if (!weights || !(by < program.conv_count
                          ? device.convs.run(by, nullptr, weights, to)
                          : device.gemms.run(&device, by - program.conv_count,
                                             nullptr, weights, to)))
      return defect("the weights of '%s' cannot be prepacked", variable.name);
  }
  return {};
}

Error Instance::openDevice(penstock_device &device,
                           const std::vector<MappedFile> &files) {
  if (Error error = device.arena.allocate(device.index, device.description))
    return error;
  char *arena = device.arena.base();
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.file < 0 || variable.file_order)
      continue;
    const MappedFile &file = files[variable.file];
    if (variable.file_offset > file.size() ||
        variable.type.bytes > file.size() - variable.file_offset)
      return userError("'%s' is shorter than when it was compiled: '%s' is "
                       "not inside it",
                       program.files[variable.file].path, variable.name);
    for (uint32_t j = 0; j < variable.placement_count; ++j)
      if (variable.placements[j].device == device.index)
        std::memcpy(arena + variable.placements[j].offset,
                    file.data() + variable.file_offset, variable.type.bytes);
  }
  if (Error error = device.gemms.prepare(program, device.index, arena))
    return error;
  if (Error error = device.convs.prepare(program, device.index, arena))
    return error;
  return prepackWeights(device);
}

Error Instance::open(const std::vector<MappedFile> &files, bool isTraced) {
  if (Error error = check())
    return error;
  policy.spinNanoseconds = isOversubscribed(program) ? 0 : 50000;

  std::vector<Error> errors(program.device_count);
  for (uint32_t i = 0; i < program.device_count; ++i) {
    auto device =
        std::make_unique<penstock_device>(*this, i, program.devices[i]);
    if (isTraced)
      device->trace = std::make_unique<TraceBuffer>();
    device->worker = std::make_unique<Worker>(shareOfCores(program, i),
                                              program.devices[i].threads);
    positions.devices.push_back({i, &device->position});
    deviceList.push_back(std::move(device));
  }
  buildEndpoints();
  for (auto &device : deviceList)
    device->worker->start([&, target = device.get()] {
      errors[target->index] = openDevice(*target, files);
    });
  for (auto &device : deviceList)
    device->worker->wait(-1);
  for (Error &error : errors)
    if (error)
      return error;
  return {};
}

void Instance::run(const penstock_schedule &schedule, int64_t first,
                   int64_t updates, int64_t version, const DataSet &data,
                   const std::function<void()> &observe) {
  {
    std::lock_guard<std::mutex> lock(sourceMutex);
    currentData = &data;
    for (uint32_t i = 0; i < endpoints.size(); ++i) {
      Endpoint &endpoint = endpoints[i];
      endpoint.channel->reset();
      if (endpoint.isSource)
        endpoint.channel->input = data.inputOf(endpoint.channel->description);
      sourceNext[i] = 0;
    }
    for (auto &sum : sums)
      sum->reset();
  }
  for (auto &device : deviceList) {
    penstock_device_function function = schedule.functions[device->index];
    if (!function)
      continue;
    device->firstTransfer = device->endTransfer = 0;
    device->position.isRunning.store(true);
    device->worker->start([=, target = device.get()] {
      function(target, first, updates, version);
      finishTransfers(target);
      target->position.isRunning.store(false);
    });
  }
  for (auto &device : deviceList)
    while (!device->worker->wait(/*milliseconds=*/5))
      observe();
  observe();
}

const char *Instance::value(const penstock_variable &variable, int64_t updates,
                            uint32_t copy) const {
  const penstock_placement &place = variable.placements[copy];
  uint64_t version = uint64_t(updates) % std::max(variable.versions, 1u);
  return deviceList[place.device]->arena.base() + place.offset +
         version * place.stride;
}

std::vector<ArenaBytes> Instance::arenas() const {
  std::vector<ArenaBytes> arenas;
  for (const auto &device : deviceList)
    arenas.push_back({device->index, device->arena.size()});
  return arenas;
}

bool Instance::setHyperparameter(const char *name, double value) {
  bool isKnown = false;
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name)) {
      hyperparameters[i] = value;
      isKnown = true;
    }
  return isKnown;
}

void Instance::setIntegerHyperparameter(const char *name, int64_t value) {
  setHyperparameter(name, double(value));
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name))
      integers[i] = value;
}

double Instance::findHyperparameter(const char *name) const {
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name))
      return hyperparameters[i];
  return 0;
}

bool Instance::fillSources() {
  bool hasFilled = false;
  std::lock_guard<std::mutex> lock(sourceMutex);
  for (uint32_t id = 0; id < endpoints.size(); ++id) {
    Endpoint &endpoint = endpoints[id];
    if (!endpoint.isSource)
      continue;
    Channel &channel = *endpoint.channel;
    int64_t &next = sourceNext[id];
    int64_t n;
    void *slot;
    while (true) {
      if (channel.claim(next, n, slot)) {
        currentData->gather(channel.description, channel.input, n, slot);
        channel.finish(next++);
        hasFilled = true;
      } else if (channel.isTaken(next)) {
        ++next;
      } else {
        break;
      }
    }
  }
  return hasFilled;
}

void Instance::sourceLoop() {
  while (!isSourceStopping.load()) {
    uint32_t seen = sourceRequests.load();
    if (!fillSources() && !isSourceStopping.load())
      sourceRequests.park(seen);
  }
}
