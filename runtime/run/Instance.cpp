//===- Instance.cpp - One opened program ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening: check the descriptor, start the device threads, let each allocate
// its arena, read initial values and prepare its library calls. Then segments.
//===----------------------------------------------------------------------===//

#include "runtime/run/Instance.h"

#include "runtime/device/LibraryCalls.h"
#include "runtime/run/Metrics.h"
#include "runtime/support/Bf16.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace penstock::runtime;

/// Returns true if the scratch of library calls lies in the arena.
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

/// Where a variable lies on a device, or null.
static const penstock_placement *
findPlacement(const penstock_variable &variable, uint32_t device) {
  for (uint32_t j = 0; j < variable.placement_count; ++j)
    if (variable.placements[j].device == device)
      return &variable.placements[j];
  return nullptr;
}

Instance::Instance(const penstock_program &program)
    : Instance(program, createThreads(),
               std::vector<bool>(program.device_count, true)) {}

Instance::Instance(const penstock_program &program,
                   std::unique_ptr<Transport> transport,
                   std::vector<bool> isLocal)
    : program(program), isLocal(std::move(isLocal)),
      deviceList(program.device_count), context(program) {
  context.transport = std::move(transport);
  context.cores.isLocal = this->isLocal;
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    context.hyperparameters.push_back(program.hyperparameters[i].value);
  context.integers.resize(program.hyperparameter_count);
}

Instance::~Instance() {
  context.transport->leave();
  // Library objects are destroyed where they were used.
  for (penstock_device *device : localDevices)
    device->start([device] { device->close(); });
  for (penstock_device *device : localDevices)
    device->finish(-1);
}

Error Instance::check() const {
  // 1. Channels: the sinks are those that something reads.
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    bool isOutput = channel.role == PENSTOCK_CHANNEL_OUTPUT;
    if (!isSink(channel) || (isOutput && infers(program)))
      continue;
    const MetricKind *metric = channel.role == PENSTOCK_CHANNEL_METRIC
                                   ? findMetric(channel.endpoint)
                                   : nullptr;
    bool isFloat = channel.role == PENSTOCK_CHANNEL_LOSS ||
                   (metric && metric->classes == 0);
    uint32_t element = isFloat ? PENSTOCK_F32 : PENSTOCK_I64;
    if (isOutput || (channel.role > PENSTOCK_CHANNEL_OUTPUT && !metric) ||
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
    if (variable.file_element && (variable.file_element != PENSTOCK_F32 ||
                                  variable.type.element != PENSTOCK_BF16))
      return defect("variable '%s' cannot start as rounded %s", variable.name,
                    elementName(variable.file_element));
    if (variable.file >= int32_t(program.file_count))
      return defect("variable '%s' names no file", variable.name);
  }
  uint64_t total = 0;
  for (uint32_t i = 0; i < program.device_count; ++i) {
    const penstock_device_descriptor &device = program.devices[i];
    const DeviceKind *kind = isLocal[i] ? findDeviceKind(device.kind) : nullptr;
    if (isLocal[i] && !kind)
      return defect("this executable was linked without devices of kind '%s'",
                    device.kind);
    if (kind && kind->isInHostMemory)
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
  auto find = [&](int32_t device) {
    return device < 0 ? nullptr : deviceList[device].get();
  };
  context.endpoints.resize(program.channel_count);
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &description = program.channels[i];
    Endpoint &endpoint = context.endpoints[i];
    endpoint.channel = std::make_unique<Channel>(description, i);
    endpoint.channel->from = find(description.sender);
    endpoint.channel->to = find(description.receiver);
    endpoint.isFar = description.sender >= 0 && description.receiver >= 0 &&
                     !endpoint.channel->from != !endpoint.channel->to;
    endpoint.isSource = isSource(description);
    endpoint.hasOwnQueue = description.own_queue;
    if (isSink(description))
      endpoint.sink = std::make_unique<SinkRing>();
  }
  for (uint32_t i = 0; i < program.group_count; ++i)
    context.sums.push_back(
        std::make_unique<AllReduce>(program.groups[i], isLocal));
}

/// Where the value is that a variable has after so many updates.
static Address placeOf(const penstock_device &device,
                       const penstock_variable &variable,
                       const penstock_placement &place, int64_t updates) {
  uint64_t version = uint64_t(updates) * std::max(variable.version_step, 1u) %
                     std::max(variable.versions, 1u);
  return device.getOrigin() + place.offset + version * place.stride;
}

/// Those weights of a device that are prepacked, from what they are after so
/// many updates.
Error Instance::prepackWeights(penstock_device &device, int64_t updates) {
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    const penstock_placement *result = findPlacement(variable, device.index);
    if (variable.role != PENSTOCK_ROLE_PREPACKED || !result)
      continue;
    const penstock_variable &from = program.variables[variable.prepacked_from];
    const penstock_placement *weights = findPlacement(from, device.index);
    if (!weights ||
        !device.prepack(variable.prepacked_by,
                        placeOf(device, from, *weights, updates),
                        placeOf(device, variable, *result, updates)))
      return defect("the weights of '%s' cannot be prepacked", variable.name);
  }
  return {};
}

Error Instance::openDevice(penstock_device &device,
                           const std::vector<MappedFile> &files) {
  if (Error error = device.open())
    return error;
  std::vector<char> rounded;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.file < 0 || variable.file_order)
      continue;
    const MappedFile &file = files[variable.file];
    uint64_t bytes = variable.type.bytes;
    if (variable.file_element)
      bytes = bytes / sizeof(uint16_t) * sizeof(float);
    if (variable.file_offset > file.size() ||
        bytes > file.size() - variable.file_offset)
      return userError("'%s' is shorter than when it was compiled: '%s' is "
                       "not inside it",
                       program.files[variable.file].path, variable.name);
    const char *values = file.data() + variable.file_offset;
    if (variable.file_element) {
      rounded.resize(variable.type.bytes);
      roundToBf16(rounded.data(), values, bytes / sizeof(float));
      values = rounded.data();
    }
    write(variable, device, values);
  }
  device.openTransfers();
  return prepackWeights(device, 0);
}

Error Instance::open(const std::vector<MappedFile> &files, bool isTraced) {
  if (Error error = check())
    return error;
  context.waitPolicy.spinNanoseconds = isOversubscribed() ? 0 : 50000;

  // 1. Devices and what stands between them.
  for (uint32_t i = 0; i < program.device_count; ++i) {
    if (!isLocal[i])
      continue;
    deviceList[i] = createDevice(context, i);
    penstock_device *device = localDevices.emplace_back(deviceList[i].get());
    if (isTraced)
      device->trace = std::make_unique<TraceBuffer>(traceSteps);
    context.positions.devices.push_back({i, &device->position});
  }
  buildEndpoints();
  std::vector<AllReduce *> sums;
  for (auto &sum : context.sums)
    sums.push_back(sum.get());
  if (Error error = context.transport->open(
          context.endpoints, sums, context.positions, isOversubscribed()))
    return error;

  // 2. Memory and values, each on the thread of its device.
  std::vector<Error> errors(program.device_count);
  for (penstock_device *device : localDevices)
    device->start(
        [&, device] { errors[device->index] = openDevice(*device, files); });
  for (penstock_device *device : localDevices)
    device->finish(-1);
  for (Error &error : errors)
    if (error)
      return error;

  // 3. What needs to know where memory is.
  for (Endpoint &endpoint : context.endpoints)
    endpoint.channel->open();
  std::vector<DeviceMemory *> memories;
  for (auto &device : deviceList)
    memories.push_back(device.get());
  for (auto &sum : context.sums)
    sum->open(memories);
  context.sources.open();
  return {};
}

Error Instance::run(const penstock_schedule &schedule, int64_t first,
                    int64_t updates, int64_t version, const DataSet &data,
                    const std::function<void()> &observe) {
  context.sources.begin(data);
  for (auto &sum : context.sums)
    sum->reset();
  context.transport->begin();
  context.bound.begin(updates);
  for (Endpoint &endpoint : context.endpoints)
    if (endpoint.sink)
      endpoint.sink->begin(schedule.microbatches /
                           endpoint.channel->description.stride);
  auto observeHere = [&] {
    while (isAborted.load())
      ::pause();
    observe();
  };
  for (penstock_device *device : localDevices)
    if (penstock_device_function function = schedule.functions[device->index])
      device->run(function, first, updates, version);
  // Each look takes the time of a core, which may be that of a device.
  constexpr int kOften = 5, kSeldom = 20;
  int milliseconds = kOften;
  for (penstock_device *device : localDevices)
    while (!device->finish(milliseconds)) {
      bool isFilling =
          std::ranges::any_of(context.endpoints, [](const Endpoint &endpoint) {
            return endpoint.sink && endpoint.sink->isFilling();
          });
      milliseconds = isFilling ? kOften : kSeldom;
      for (penstock_device *running : localDevices)
        running->poll();
      context.transport->poll();
      observeHere();
    }
  observeHere();
  return context.transport->end();
}

std::vector<const Begun *> Instance::listBegun() const {
  std::vector<const Begun *> begun;
  for (const penstock_device *device : localDevices)
    begun.push_back(&device->begun);
  return begun;
}

void Instance::shrink() { context.bound.shrink(listBegun()); }

void Instance::onNotFinite(
    const std::function<void(int64_t microbatch)> &look) {
  for (Endpoint &endpoint : context.endpoints) {
    const penstock_channel &channel = endpoint.channel->description;
    if (!endpoint.sink || channel.role != PENSTOCK_CHANNEL_LOSS)
      continue;
    endpoint.sink->onNotFinite = nullptr;
    if (look)
      endpoint.sink->onNotFinite = [look, &channel](int64_t n) {
        look(n * channel.stride + channel.offset);
      };
  }
}

void Instance::watchForwards(bool isOn) {
  for (Endpoint &endpoint : context.endpoints) {
    const Channel &channel = *endpoint.channel;
    if (!channel.from || channel.description.stage < 0 || endpoint.sink)
      continue;
    if (!endpoint.watch && channel.from->isHostAddressable())
      endpoint.watch = std::make_unique<FiniteWatch>(channel.description.type);
    endpoint.isWatched = isOn && endpoint.watch;
  }
}

/// Returns the worker whose line a stage is in. Lines stand one behind the
/// other, and end with a loss each.
static uint32_t findWorker(const penstock_program &program, int32_t stage) {
  uint32_t worker = std::max(program.worker_count, 1u) - 1;
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    if (channel.role == PENSTOCK_CHANNEL_LOSS && channel.stage >= stage &&
        channel.stride == program.worker_count)
      worker = std::min(worker, channel.offset);
  }
  return worker;
}

std::optional<int32_t> Instance::findNotFinite(int64_t microbatch) const {
  // Workers have every so many microbatches, and number their own.
  int64_t workers = std::max(program.worker_count, 1u);
  int64_t own = microbatch / workers;
  int32_t first = -1;
  for (const Endpoint &endpoint : context.endpoints) {
    const penstock_channel &channel = endpoint.channel->description;
    if (!endpoint.channel->from || channel.stage < 0 ||
        findWorker(program, channel.stage) != microbatch % workers)
      continue;
    // The stage of the loss is where it begins if no other is.
    bool isThere = channel.role == PENSTOCK_CHANNEL_LOSS;
    if (!endpoint.sink) {
      if (!endpoint.watch)
        return std::nullopt;
      isThere = own % channel.stride == channel.offset &&
                endpoint.watch->beginsAt(own / channel.stride);
    }
    if (isThere && (first < 0 || channel.stage < first))
      first = channel.stage;
  }
  return first;
}

void Instance::read(const penstock_variable &variable, int64_t updates,
                    char *values, uint32_t copy) const {
  deviceList[variable.placements[copy].device]->download(
      values, addressOf(variable, updates, copy), variable.type.bytes);
}

Address Instance::addressOf(const penstock_variable &variable, int64_t updates,
                            uint32_t copy) const {
  const penstock_placement &place = variable.placements[copy];
  return placeOf(*deviceList[place.device], variable, place, updates);
}

Error Instance::readPieces(const penstock_variable &variable, int64_t updates,
                           uint32_t copy, bool inOrderOfFile,
                           const TakePiece &take) const {
  std::vector<char> values;
  if (inOrderOfFile && variable.file_order) {
    values.resize(variable.type.bytes);
    read(variable, updates, values.data(), copy);
    values = inFileOrder(variable, values.data());
    return take(values.data(), values.size());
  }
  constexpr uint64_t kPiece = 1 << 20;
  const penstock_placement &place = variable.placements[copy];
  penstock_device &device = *deviceList[place.device];
  Address from = addressOf(variable, updates, copy);
  values.resize(std::min(kPiece, variable.type.bytes));
  for (uint64_t at = 0; at < variable.type.bytes; at += kPiece) {
    uint64_t size = std::min(kPiece, variable.type.bytes - at);
    device.download(values.data(), from + at, size);
    if (Error error = take(values.data(), size))
      return error;
  }
  return {};
}

void Instance::write(const penstock_variable &variable, penstock_device &device,
                     const char *values, int64_t updates) {
  for (uint32_t j = 0; j < variable.placement_count; ++j)
    if (variable.placements[j].device == device.index)
      device.upload(placeOf(device, variable, variable.placements[j], updates),
                    values, variable.type.bytes);
}

void Instance::read(std::span<const Target> targets, int64_t updates) const {
  for (penstock_device *device : localDevices)
    device->start([=, this] {
      for (const Target &target : targets)
        if (target.variable->placements->device == device->index)
          read(*target.variable, updates, target.values);
    });
  for (penstock_device *device : localDevices)
    device->finish(-1);
}

/// Calls a function for each device, on its thread. Returns the first error, in
/// the order of the devices.
template <typename Devices, typename Function>
static Error callOnEach(const Devices &devices, Function function) {
  std::vector<Error> errors(devices.size());
  for (size_t i = 0; i < devices.size(); ++i)
    devices[i]->start([&, i] { errors[i] = function(*devices[i]); });
  for (penstock_device *device : devices)
    device->finish(-1);
  for (Error &error : errors)
    if (error)
      return std::move(error);
  return {};
}

Error Instance::goOn(std::span<const Source> sources, int64_t updates) {
  return callOnEach(localDevices, [&](penstock_device &device) {
    for (const Source &source : sources)
      write(*source.variable, device, source.values, updates);
    return prepackWeights(device, updates);
  });
}

/// Calls `take` with offset and size of the pieces of so many bytes: nobody has
/// room for a second copy of a weight.
template <typename Take> static void forEachPiece(uint64_t bytes, Take take) {
  constexpr uint64_t kPiece = 1 << 20;
  for (uint64_t at = 0; at < bytes; at += kPiece)
    take(at, std::min(kPiece, bytes - at));
}

static void exchangeBytes(penstock_device &device, Address first,
                          Address second, uint64_t bytes) {
  std::vector<char> one, other;
  forEachPiece(bytes, [&](uint64_t at, uint64_t size) {
    one.resize(size);
    other.resize(size);
    device.download(one.data(), first + at, size);
    device.download(other.data(), second + at, size);
    device.upload(first + at, other.data(), size);
    device.upload(second + at, one.data(), size);
  });
}

/// Writes `from`, of f32, rounded to `to`.
static void roundBytes(penstock_device &device, Address from, Address to,
                       uint64_t bytes) {
  std::vector<char> values, rounded;
  forEachPiece(bytes, [&](uint64_t at, uint64_t size) {
    values.resize(size);
    rounded.resize(size / 2);
    device.download(values.data(), from + at, size);
    roundToBf16(rounded.data(), values.data(), size / sizeof(float));
    device.upload(to + at / 2, rounded.data(), rounded.size());
  });
}

Error Instance::exchange(std::span<const Average> averages, int64_t updates) {
  return callOnEach(localDevices, [&](penstock_device &device) {
    for (const Average &each : averages) {
      auto find = [&](const penstock_variable *variable) {
        return variable ? findPlacement(*variable, device.index) : nullptr;
      };
      const penstock_placement *weight = find(each.weight);
      const penstock_placement *average = find(each.average);
      if (!weight || !average)
        continue;
      Address from = placeOf(device, *each.weight, *weight, updates);
      exchangeBytes(device, from,
                    placeOf(device, *each.average, *average, updates),
                    each.weight->type.bytes);
      if (const penstock_placement *rounded = find(each.rounded))
        roundBytes(device, from,
                   placeOf(device, *each.rounded, *rounded, updates),
                   each.weight->type.bytes);
    }
    return prepackWeights(device, updates);
  });
}

std::vector<ArenaBytes> Instance::arenas() const {
  std::vector<ArenaBytes> arenas;
  for (const penstock_device *device : localDevices)
    arenas.push_back({device->index, device->statistics().arenaBytes});
  return arenas;
}

bool Instance::setHyperparameter(const char *name, double value) {
  bool isKnown = false;
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name)) {
      context.hyperparameters[i] = value;
      isKnown = true;
    }
  return isKnown;
}

void Instance::setIntegerHyperparameter(const char *name, int64_t value) {
  setHyperparameter(name, double(value));
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name))
      context.integers[i] = value;
}

double Instance::findHyperparameter(const char *name) const {
  for (uint32_t i = 0; i < program.hyperparameter_count; ++i)
    if (!std::strcmp(program.hyperparameters[i].name, name))
      return context.hyperparameters[i];
  return 0;
}
