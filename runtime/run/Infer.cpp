//===- Infer.cpp - All samples through the model, once --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One segment over as many microbatches as the samples fill or begin. The last
// one repeats the last sample where there are no more; those rows are not
// written.
//===----------------------------------------------------------------------===//

#include "runtime/run/Run.h"

using namespace penstock::runtime;

/// Rank 0 writes the files. Others keep what they compute until it is asked
/// for.
Error penstock_run::openOutputs(OutputArrays &outputs) {
  if (!peers.isRoot())
    return outputs.openUnnamed(program, trainData);
  if (Error error = outputs.open(program, options.outputs, trainData))
    return error;
  for (const auto &array : outputs.all())
    if (Error error =
            options.checkOverwrite("outputs", array->path, inputPaths()))
      return error;
  return {};
}

/// Brings what other processes have computed to rank 0, in the order of
/// channels and microbatches.
void penstock_run::collectOutputs(OutputArrays &outputs, int64_t microbatches) {
  auto forEach = [&](int rank, auto action) {
    for (uint32_t i = 0; i < program.channel_count; ++i) {
      const penstock_channel &channel = program.channels[i];
      OutputArray *output = outputs.find(channel);
      if (!output || peers.getJob().rankOfDevice[channel.sender] != rank)
        continue;
      for (int64_t n = channel.offset; n < microbatches; n += channel.stride)
        action(output->getRoom(n));
    }
  };
  if (!peers.isRoot()) {
    peers.waitForTurn();
    StreamWriter stream = peers.startWriting();
    forEach(peers.getJob().rank, [&](std::span<char> room) {
      stream.write(room.data(), room.size());
    });
    return stream.finish();
  }
  for (int rank = 1; rank < peers.getJob().size; ++rank) {
    peers.giveTurn(rank);
    StreamReader stream = peers.startReading(rank);
    forEach(rank, [&](std::span<char> room) {
      (void)stream.read(room.data(), room.size());
    });
  }
}

Error penstock_run::infer() {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_INFER);
  if (!schedule)
    return userError("this program trains; compile it with --mode=infer");
  if (options.outputs.empty())
    return userError("--outputs DIR is missing");
  OutputArrays outputs;
  if (Error error = peers.agree(openOutputs(outputs)))
    return error;
  for (Endpoint &endpoint : instance->allEndpoints())
    endpoint.output = outputs.find(endpoint.channel->description);

  startTime = nanoseconds();
  std::function<void()> checkProgress = watch();
  int64_t microbatches = trainData.isWhole() ? 1
                                             : trainData.usableCount() /
                                                   trainData.microbatchSize();
  // Stages with replicas have one microbatch each per turn. What is over in the
  // last turn has no place in the outputs.
  int64_t turns = (microbatches + schedule->microbatches - 1) /
                  int64_t(schedule->microbatches);
  if (Error error =
          instance->run(*schedule, 0, turns, 0, trainData, checkProgress))
    return error;
  peers.finishSegment(checkProgress);
  trainSeconds = double(nanoseconds() - startTime) * 1e-9;
  collectOutputs(outputs, microbatches);
  if (!peers.isRoot())
    return peers.agree({});
  for (Endpoint &endpoint : instance->allEndpoints())
    endpoint.output = nullptr;

  for (const auto &array : outputs.all())
    results +=
        format("%s: %s %s\n", array->path.c_str(),
               elementName(array->channel.type.element),
               shapeText(array->shape.data(), array->shape.size()).c_str());
  if (!trainData.isWhole())
    results += format("%lld samples in %.3f s: %.0f samples/s\n",
                      (long long)trainData.sampleCount(), trainSeconds,
                      double(trainData.sampleCount()) / trainSeconds);
  return peers.agree(outputs.commit());
}
