//===- Calls.cpp - What compiled code calls -------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steady state on devices of any kind: nothing here allocates, formats or
// locks unless something went wrong. The transfer queue of a device is the
// order of its calls. Pointers of compiled code become addresses at once.
//===----------------------------------------------------------------------===//

#include "runtime/device/Device.h"
#include "runtime/observe/Failure.h"

using namespace penstock::runtime;

/// A single writer needs no atomic addition.
template <typename T> static void add(std::atomic<T> &counter, T value) {
  counter.store(counter.load(std::memory_order_relaxed) + value,
                std::memory_order_relaxed);
}

[[gnu::cold, noreturn]] static void badPost(penstock_device *device,
                                            const Channel &channel, int64_t n,
                                            PostResult result,
                                            const char *action) {
  const char *why = result == PostResult::OutOfOrder ? "is not the next message"
                    : result == PostResult::TooMany
                        ? "exceeds the channel's slots and staging"
                        : "meets a message of another number";
  fail(device->context.positions, PENSTOCK_DEFECT,
       "device %u: %s of message %lld of channel '%s' %s", device->index,
       action, (long long)n, channel.description.name, why);
}

static void issue(penstock_device *device, Endpoint &endpoint,
                  Channel::Side &side) {
  if (!endpoint.hasOwnQueue)
    device->transfers[device->endTransfer++ & device->transferMask] = {
        &endpoint, &side, side.posted - 1, nullptr};
  if (device->flight)
    recordFlight(device->flight, FlightKind::Post, endpoint.channel->index,
                 side.base + side.posted - 1);
  if (endpoint.isFar)
    device->context.transport->posted(*endpoint.channel);
}

static void endSlice(penstock_device *device) {
  if (device->trace && device->trace->hasBegun())
    device->trace->close(device->getTraceTime());
}

/// Lets the device follow message i, for which it may have to wait although the
/// host has not.
static void follow(penstock_device *device, Channel &channel, int64_t i,
                   int64_t n) {
  if (!device->trace || !device->runsBehind)
    return channel.follow(i, *device);
  int64_t begin = device->getTraceTime();
  channel.follow(i, *device);
  device->trace->wait(channel.index, n, begin, device->getTraceTime());
}

/// Waits for message i, with the time accounted for.
static void waitFor(penstock_device *device, Endpoint &endpoint, int64_t i,
                    int64_t n) {
  Channel &channel = *endpoint.channel;
  if (channel.isDone(i))
    return follow(device, channel, i, n);
  if (device->flight)
    recordFlight(device->flight, FlightKind::Wait, channel.index, n);
  int64_t begin = nanoseconds();
  int64_t traceBegin = device->trace ? device->getTraceTime() : 0;
  device->position.waitNumber.store(n, std::memory_order_relaxed);
  device->position.waitChannel.store(channel.index, std::memory_order_relaxed);
  if (endpoint.isFar)
    waitFar(*device->context.transport, channel, i, device->context.waitPolicy);
  else
    channel.wait(i, device->context.waitPolicy);
  channel.follow(i, *device);
  device->position.waitChannel.store(UINT32_MAX, std::memory_order_relaxed);
  add(device->position.waitedNanoseconds, nanoseconds() - begin);
  if (device->flight)
    recordFlight(device->flight, FlightKind::Done, channel.index, n);
  if (device->trace)
    device->trace->wait(channel.index, n, traceBegin, device->getTraceTime());
}

/// The share of this device in a sum, and the wait for the others.
static void completeSum(penstock_device *device, AllReduce &sum) {
  AllReduce::Side &side = *sum.find(device->index);
  const penstock_program &program = device->context.program;
  int64_t begin = nanoseconds(), t = side.base + side.completed;
  int64_t traceBegin = device->trace ? device->getTraceTime() : 0;
  uint32_t id =
      program.channel_count + uint32_t(&sum.description - program.groups);
  if (device->flight)
    recordFlight(device->flight, FlightKind::Wait, id, t);
  device->position.waitNumber.store(t, std::memory_order_relaxed);
  device->position.waitChannel.store(id, std::memory_order_relaxed);
  if (sum.isFar())
    waitFar(*device->context.transport, sum, side, device->context.waitPolicy);
  else
    sum.complete(side, device->context.waitPolicy);
  if (side.done)
    device->waitFor(*side.done);
  device->position.waitChannel.store(UINT32_MAX, std::memory_order_relaxed);
  add(device->position.waitedNanoseconds, nanoseconds() - begin);
  if (device->flight)
    recordFlight(device->flight, FlightKind::Done, id, t);
  if (device->trace)
    device->trace->wait(id, t, traceBegin, device->getTraceTime());
}

static void completeFirst(penstock_device *device) {
  Transfer &transfer =
      device->transfers[device->firstTransfer & device->transferMask];
  if (transfer.sum) {
    completeSum(device, *transfer.sum);
  } else {
    waitFor(device, *transfer.endpoint, transfer.message,
            transfer.side->base + transfer.message);
    transfer.side->completed = transfer.message + 1;
  }
  ++device->firstTransfer;
  add(device->position.progress, uint64_t(1));
}

/// Waits for what was posted at one end of a channel with a queue of its own,
/// up to message i.
static void completeOwn(penstock_device *device, Endpoint &endpoint,
                        Channel::Side &side, int64_t i) {
  for (; side.completed <= i; ++side.completed) {
    waitFor(device, endpoint, side.completed, side.base + side.completed);
    add(device->position.progress, uint64_t(1));
  }
}

void penstock::runtime::finishTransfers(penstock_device *device) {
  endSlice(device);
  while (device->firstTransfer != device->endTransfer)
    completeFirst(device);
  for (Endpoint &endpoint : device->context.endpoints) {
    if (!endpoint.hasOwnQueue)
      continue;
    Channel &channel = *endpoint.channel;
    for (auto [end, side] :
         {std::pair(channel.description.sender, &channel.sender),
          std::pair(channel.description.receiver, &channel.receiver)})
      if (end == int32_t(device->index))
        completeOwn(device, endpoint, *side, side->posted - 1);
  }
}

/// Fills a source's message here unless the source thread has begun to.
static void awaitSource(penstock_device *device, Endpoint &endpoint, int64_t i,
                        int64_t n) {
  Channel &channel = *endpoint.channel;
  if (channel.isDone(i))
    return follow(device, channel, i, n);
  if (device->context.sources.fill(channel, i, device->staging.data()))
    follow(device, channel, i, n);
  else
    waitFor(device, endpoint, i, n);
  add(device->position.progress, uint64_t(1));
}

extern "C" {

void penstock_recv(penstock_device *device, uint32_t id, int64_t n,
                   void *slot) {
  Endpoint &endpoint = device->context.endpoints[id];
  Channel &channel = *endpoint.channel;
  PostResult result = channel.postReceive(n, device->getAddress(slot));
  if (result != PostResult::Queued)
    badPost(device, channel, n, result, "receive");
  if (endpoint.isSource)
    device->context.sources.request(channel);
  else
    issue(device, endpoint, channel.receiver);
}

void penstock_send(penstock_device *device, uint32_t id, int64_t n,
                   const void *slot) {
  Endpoint &endpoint = device->context.endpoints[id];
  Address at = device->getAddress(slot);
  if (endpoint.output) {
    const penstock_channel &channel = endpoint.channel->description;
    std::span<char> room =
        endpoint.output->getRoom(n * channel.stride + channel.offset);
    return device->deliver(room, at);
  }
  if (endpoint.sink)
    return device->deliver(*endpoint.sink, n, at,
                           endpoint.channel->description.type.bytes);
  Channel &channel = *endpoint.channel;
  PostResult result = channel.postSend(n, at);
  if (result != PostResult::Queued)
    badPost(device, channel, n, result, "send");
  if (device->trace)
    device->trace->send(id, n, device->getTraceTime());
  issue(device, endpoint, channel.sender);
  // The receiver may copy it meanwhile; this device does not write to its slot
  // before it awaits the message.
  if (endpoint.isWatched)
    endpoint.watch->look(n, device->hostAddress(at));
}

void penstock_all_reduce(penstock_device *device, uint32_t group, int64_t t,
                         void *const *cells) {
  AllReduce &sum = *device->context.sums[group];
  AllReduce::Side *side = sum.find(device->index);
  for (uint64_t i = 0, count = side ? side->cells : 0; i < count; ++i)
    device->cells[i] = device->getAddress(cells[i]);
  if (!side || !sum.post(*side, t, device->cells.data()))
    fail(device->context.positions, PENSTOCK_DEFECT,
         "device %u: sum %lld of group '%s' comes out of turn", device->index,
         (long long)t, sum.description.name);
  device->transfers[device->endTransfer++ & device->transferMask] = {
      nullptr, nullptr, 0, &sum};
  if (device->flight)
    recordFlight(device->flight, FlightKind::Post,
                 device->context.program.channel_count + group, t);
  if (sum.isFar())
    device->context.transport->posted(sum);
}

static void awaitSum(penstock_device *device, uint32_t group, int64_t t) {
  AllReduce &sum = *device->context.sums[group];
  AllReduce::Side *side = sum.find(device->index);
  int64_t i = side ? t - side->base : 0;
  if (!side || side->posted == 0 || i >= side->posted)
    fail(device->context.positions, PENSTOCK_DEFECT,
         "device %u awaits sum %lld of group '%s', which was not started",
         device->index, (long long)t, sum.description.name);
  while (side->completed <= i)
    completeFirst(device);
}

void penstock_await(penstock_device *device, uint32_t id, int64_t n) {
  if (n < 0)
    return;
  endSlice(device);
  uint32_t channels = device->context.program.channel_count;
  if (id >= channels)
    return awaitSum(device, id - channels, n);
  Endpoint &endpoint = device->context.endpoints[id];
  if (endpoint.sink)
    return; // The value was copied when it was sent.
  Channel &channel = *endpoint.channel;
  bool isReceiver = channel.description.receiver == int32_t(device->index);
  Channel::Side &side = isReceiver ? channel.receiver : channel.sender;
  // A message of an earlier segment left no trace, and is done.
  int64_t i = n - side.base;
  if (side.posted == 0 || i < side.completed)
    return;
  if (i >= side.posted)
    fail(device->context.positions, PENSTOCK_DEFECT,
         "device %u awaits message %lld of channel '%s', which was not started",
         device->index, (long long)n, channel.description.name);
  if (endpoint.isSource) {
    for (; side.completed <= i; ++side.completed)
      awaitSource(device, endpoint, side.completed, side.base + side.completed);
    return;
  }
  if (endpoint.hasOwnQueue)
    return completeOwn(device, endpoint, side, i);
  while (side.completed <= i)
    completeFirst(device);
}

int64_t penstock_bound(penstock_device *device, int64_t least) {
  return device->context.bound.get(device->begun, least);
}

/// Does what follows a mark only on some devices, or in some runs.
[[gnu::noinline]] static void notice(penstock_device *device, uint32_t task,
                                     int64_t n) {
  if (device->runsBehind)
    device->pace();
  if (device->flight)
    recordFlight(device->flight, FlightKind::Mark, task, n);
  if (device->trace)
    device->trace->begin(device->context.program.tasks[task].letter, task, n,
                         device->getTraceTime());
  if (device->context.onMark)
    device->context.onMark(task, n);
}

void penstock_mark(penstock_device *device, uint32_t task, int64_t n) {
  device->position.taskNumber.store(n, std::memory_order_relaxed);
  device->position.task.store(task, std::memory_order_relaxed);
  add(device->position.progress, uint64_t(1));
  if (device->noticesMarks)
    notice(device, task, n);
}

double penstock_hyperparameter(penstock_device *device, uint32_t id) {
  return device->context.hyperparameters[id];
}

int64_t penstock_integer_hyperparameter(penstock_device *device, uint32_t id) {
  return device->context.integers[id];
}

void penstock_gemm(penstock_device *device, uint32_t id, const void *a,
                   const void *b, void *c) {
  device->gemm(id, a, b, c);
}

int32_t penstock_gemm_epilogue(penstock_device *device, uint32_t id,
                               const void *a, const void *b, void *c,
                               const void *bias) {
  return device->gemmWithEpilogue(id, a, b, c, bias);
}

void penstock_conv(penstock_device *device, uint32_t id, const void *input,
                   const void *weights, const void *output) {
  device->conv(id, input, weights, output);
}

void penstock_launch(penstock_device *device, uint32_t kernel,
                     const uint64_t *parameters) {
  device->launch(kernel, parameters);
}

void *penstock_find_constant(penstock_device *device, uint32_t constant) {
  return device->findConstant(constant);
}

void *penstock_find_scalars(penstock_device *device, uint32_t action) {
  return device->findScalars(action);
}

int32_t penstock_begin(penstock_device *device, uint32_t action, int64_t key) {
  return device->begin(action, key);
}

int32_t penstock_end(penstock_device *device, uint32_t action) {
  return device->end(action);
}

void penstock_parallel(penstock_device *device,
                       void (*body)(void *closure, int64_t index),
                       void *closure, int64_t count) {
  device->parallel(body, closure, count);
}

void *penstock_arena(penstock_device *device) { return device->arena; }

} // extern "C"
