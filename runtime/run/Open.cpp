//===- Open.cpp - From options to a run that can train --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks in the order of their cost, and every one before training starts: what
// can fail after an hour of training is known to work after milliseconds.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"
#include "runtime/io/ModelFiles.h"
#include "runtime/job/Bytes.h"
#include "runtime/observe/Memory.h"
#include "runtime/run/Run.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace penstock::runtime;

std::vector<std::string> penstock_run::inputPaths() const {
  std::vector<std::string> paths;
  for (const MappedFile &file : files)
    paths.push_back(file.getPath());
  for (const DataSet *set : {&trainData, &evalData})
    for (std::string &path : set->paths())
      paths.push_back(std::move(path));
  return paths;
}

/// Returns true if evaluation counts right predictions: the loss is one of
/// classes.
static bool hasCounts(const penstock_program &program) {
  return std::any_of(program.channels, program.channels + program.channel_count,
                     [](const penstock_channel &channel) {
                       return channel.role == PENSTOCK_CHANNEL_CORRECT;
                     });
}

/// Returns true if evaluations add up this metric.
static bool hasMetric(const penstock_program &program,
                      const std::string &name) {
  return std::any_of(program.channels, program.channels + program.channel_count,
                     [&](const penstock_channel &channel) {
                       return channel.role == PENSTOCK_CHANNEL_METRIC &&
                              name == channel.endpoint;
                     });
}

/// Returns true if a source has a device here; the replay has all of them.
bool penstock_run::reads(const char *endpoint) const {
  if (options.verify && peers.isRoot())
    return true;
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    if (isSource(channel) && !std::strcmp(channel.endpoint, endpoint) &&
        peers.getJob().has(uint32_t(channel.receiver)))
      return true;
  }
  return false;
}

Error penstock_run::openData() {
  auto isRead = [&](const char *endpoint) { return reads(endpoint); };
  if (infers(program))
    return trainData.open(program, options.data, "", "data", "", isRead);
  hasTrainData = !options.data.empty() || !options.labels.empty();
  if (hasTrainData)
    if (Error error = trainData.open(program, options.data, options.labels,
                                     "data", "labels", isRead))
      return error;
  hasEvalData = !options.evalData.empty() || !options.evalLabels.empty();
  if (!hasEvalData)
    return {};
  if (!findSchedule(program, PENSTOCK_SCHEDULE_EVALUATE))
    return userError("--eval-data: this program was compiled without "
                     "evaluation");
  for (const std::string &name : options.allMetrics()) {
    bool isCompiled =
        name == "mae" || penstock::runtime::findMetric(name)->classes > 0;
    if (isCompiled && !hasMetric(program, name))
      return userError("--metrics: this program does not count %s; compile it "
                       "with --metrics=%s",
                       name.c_str(), name.c_str());
    if (!isCompiled && name != "loss" && !hasCounts(program))
      return userError("--metrics: the loss of this program has no classes, "
                       "and no %s; there is loss",
                       name.c_str());
  }
  return evalData.open(program, options.evalData, options.evalLabels,
                       "eval-data", "eval-labels", isRead);
}

void penstock_run::setHyperparameters(Instance &target) {
  if (options.rate)
    target.setHyperparameter("lr", *options.rate);
  if (options.seed)
    target.setIntegerHyperparameter("seed", *options.seed);
}

Error penstock_run::checkGpus() const {
  uint32_t count = countDevices(program, "cuda", program.device_count);
  if (options.gpus.empty() || options.gpus.size() <= count)
    return {};
  if (count == 0)
    return userError("--gpus: this program has no device on a GPU; compile it "
                     "with --target=cuda");
  return userError("--gpus names %zu GPUs, but this program has %u devices on "
                   "GPUs",
                   options.gpus.size(), count);
}

Error penstock_run::checkTune() const {
  const std::string &path = options.tune;
  if (path.empty())
    return {};
  if (!countDevices(program, "cuda", program.device_count))
    return userError("--tune: this program has no device on a GPU; compile it "
                     "with --target=cuda");
  if (!peers.isAlone() && access(path.c_str(), R_OK))
    return userError("--tune: '%s' cannot be read, and several processes do "
                     "not measure; make it by one process, with --alone",
                     path.c_str());
  return checkWritable(path, "--tune");
}

Error penstock_run::checkOutputs() {
  for (auto [flag, path] : {std::pair("--save", &options.save),
                            {"--save-best", &options.saveBest},
                            {"--save-raw", &options.saveRaw}})
    if (!path->empty())
      if (Error error = writer->check(*path, flag))
        return error;
  for (auto [flag, path] : {std::pair("log", &options.log),
                            {"save", &options.save},
                            {"save-best", &options.saveBest},
                            {"save-raw", &options.saveRaw},
                            {"trace", &options.trace},
                            {"memory", &options.memory},
                            {"summary-json", &options.summaryJson}})
    if (Error error = options.checkOverwrite(flag, *path, inputPaths()))
      return error;
  for (auto [flag, path] : {std::pair("--trace", &options.trace),
                            {"--memory", &options.memory},
                            {"--summary-json", &options.summaryJson},
                            {"--log", &options.log}})
    if (!path->empty())
      if (Error error = checkWritable(*path, flag))
        return error;
  return {};
}

Error penstock_run::checkOptions() const {
  if (program.abi_version != PENSTOCK_ABI_VERSION)
    return defect("the program was compiled against version %u of the runtime "
                  "interface, this is version %u",
                  program.abi_version, PENSTOCK_ABI_VERSION);
  if (options.readsStream() && !peers.isAlone())
    return userError("--data: several processes do not share standard input; "
                     "write the samples to a file");
  if (Error error = checkDevices(program))
    return error;
  if (Error error = options.checkTogether())
    return error;
  if (Error error = options.checkMode(infers(program)))
    return error;
  if (Error error = checkGpus())
    return error;
  for (auto [flag, isGiven] : {std::pair("save-raw", !options.saveRaw.empty()),
                               {"eval-raw", options.evaluatesRaw}})
    if (isGiven && averages.empty())
      return userError("--%s: this program keeps no averages of its weights; "
                       "leave --%s out, or compile with --ema=0.999",
                       flag, flag);
  if (Error error = checkTune())
    return error;
  if (options.verify && !program.replay)
    return userError("--verify: this program was compiled without its "
                     "one-device replay");
  return options.verify ? checkDevices(*program.replay) : Error();
}

/// Everything but what a process knows from others.
Error penstock_run::openInputs() {
  if (Error error = checkOptions())
    return error;

  if (Error error = peers.loadTransport(options.gpus))
    return error;
  checkpoints.prepare(peers.getJob());

  // 1. Input files.
  instance = std::make_unique<Instance>(program, peers.createTransport(),
                                        peers.listLocal());
  if (Error error = openModelFiles(program, options.model, files))
    return error;
  if (Error error = openData())
    return error;
  for (const DataSet *set : {&trainData, &evalData})
    for (const std::string &note : set->getNotes())
      if (peers.isRoot())
        std::fprintf(stderr, "note: %s\n", penstock::toOneLine(note).c_str());

  // 2. Places of output files.
  writer = std::make_unique<ModelWriter>(program, files);
  if (peers.isRoot())
    if (Error error = checkOutputs())
      return error;
  if (peers.isRoot())
    if (Error error = monitor.open(options))
      return error;
  if (peers.isRoot() && options.metricsPort == 0)
    std::fprintf(stderr, "metrics: port %lld\n", (long long)monitor.getPort());
  if (options.checkpointDir.empty())
    return {};
  return checkpoints.open(checkpointPeers, options.checkpointDir,
                          options.checkpointKeep.value_or(3),
                          options.warnsOfNotFinite);
}

Record penstock_run::describe(const Error &error) const {
  Record record;
  record.code = error.code;
  record.sentence = error.text;
  if (peers.isAlone())
    return record;
  describeMachine(record, !options.mixedCpus);
  peers.describeTransport(record);
  describeFlags(record, options);
  for (const DataSet *set : {&trainData, &evalData})
    for (const DataSet::Opened &file : set->listOpened())
      record.files.push_back({file.input,
                              file.path.substr(file.path.rfind('/') + 1),
                              file.samples, file.type, file.checksum});
  return record;
}

/// Sizes that follow from samples, of which others may have told.
Error penstock_run::finishData() {
  const penstock_schedule *train =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);
  if (trainData.sampleCount() < 0) {
    int64_t count = peers.findSamples("--data");
    trainData.setSampleCount(count < 0 ? peers.findSamples("--labels") : count);
  }
  if (evalData.sampleCount() < 0) {
    int64_t count = peers.findSamples("--eval-data");
    evalData.setSampleCount(count < 0 ? peers.findSamples("--eval-labels")
                                      : count);
  }
  if (infers(program))
    return trainData.setPadded("data");
  if (hasTrainData) {
    if (Error error = trainData.setUpdate(
            program, train ? train->microbatches : 1, options.last, "data"))
      return error;
    if (trainData.hasStream() && train && options.steps &&
        *options.steps > passUpdates())
      return userError("--steps %lld: the stream of --data has %lld samples, "
                       "which are %lld updates",
                       (long long)*options.steps,
                       (long long)trainData.sampleCount(),
                       (long long)passUpdates());
    if (options.shuffle)
      trainData.setShuffle(
          options.seed ? uint64_t(*options.seed)
                       : uint64_t(instance->findHyperparameter("seed")));
  }
  return hasEvalData ? evalData.setEvaluated("eval-data") : Error();
}

Error penstock_run::openInstances() {
  if (Error error = finishData())
    return error;
  instance->setGpus(peers.chooseGpus(options.gpus));
  instance->setTuning(options.tune, peers.isAlone());
  instance->setOversubscribed(peers.divideCores());
  instance->setTraceSteps(getTraceSteps());
  if (Error error = instance->open(files, !options.trace.empty()))
    return error;
  if (Error error = openFlightRecord())
    return error;
  peers.follow(instance.get());
  if (options.rate && !instance->setHyperparameter("lr", *options.rate))
    return userError("--lr: this program has no learning rate");
  setHyperparameters(*instance);
  waitSeconds.resize(program.device_count);
  if (options.verify && peers.isRoot()) {
    oneDevice = std::make_unique<Instance>(*program.replay);
    oneDevice->setGpus(peers.chooseGpus(options.gpus));
    oneDevice->setTuning(options.tune, peers.isAlone());
    if (Error error = oneDevice->open(files, /*isTraced=*/false))
      return error;
    setHyperparameters(*oneDevice);
  }

  // What a checkpoint says of the data is read now, and in no pause.
  if (checkpoints.isOpen())
    dataFacts = trainData.describe();
  return {};
}

/// All processes go on from where rank 0 says.
Error penstock_run::startFromCheckpoint() {
  if (Error error = joinCheckpoints())
    return error;
  if (!options.resume.empty())
    return resume(options.resume);
  if (!options.resumeIfAny)
    return {};
  bool isThere =
      peers.isRoot() && !listCheckpoints(options.checkpointDir).empty();
  if (!peers.isAlone())
    isThere = peers.broadcast(isThere ? "1" : "") == "1";
  return isThere ? resume(options.checkpointDir) : Error();
}

/// Several processes have a record unless they are told not to; one has it
/// where it is told where.
Error penstock_run::openFlightRecord() {
  if (options.flightRecord == "off" ||
      (peers.isAlone() && options.flightRecord.empty()))
    return {};
  Token run = peers.getToken();
  std::string folder = options.flightRecord;
  if (folder.empty()) {
    std::string name;
    for (int i = 0; i < 6; ++i)
      name += format("%02x", run[i]);
    folder = getRecordFolder(name);
    if (peers.getJob().localRank == 0)
      removeOldRecords(folder);
  }
  if (Error error = flightRecord.open(folder, program, peers.getJob(), run,
                                      peers.getClock()))
    return error;
  for (penstock_device *device : instance->devices())
    device->flight = flightRecord.find(device->index);
  peers.setFlightRecord(&flightRecord, folder);
  return {};
}

std::string penstock_run::findRecord(const Error &error) const {
  bool isMistake = !error || error.code == PENSTOCK_USER_ERROR ||
                   error.code == PENSTOCK_DOES_NOT_FIT || error.code >= 128;
  return isMistake || !flightRecord.isOpen() ? "" : flightRecord.getFolder();
}

void penstock_run::leave(const Error &error) {
  bool isKept = !findRecord(error).empty();
  if (isKept && hasAgreed())
    flightRecord.setEnd(FlightEnd::Agreed);
  peers.leave(error);
  if (!isKept)
    flightRecord.remove();
}

Error penstock_run::connect() {
  std::string invitation;
  Error error;
  if (peers.isRoot())
    error = instance->invite(invitation);
  invitation = peers.broadcast(std::move(invitation));
  if (error)
    return error;
  return instance->connect(invitation,
                           [this](bool own) { return peers.haveAll(own); });
}

/// Gathers the arenas that all processes have allocated.
Error penstock_run::gatherArenas() {
  arenas = instance->arenas();
  if (peers.isAlone()) {
    stagedBytes = checkpoints.stagedBytes();
    return {};
  }
  ByteWriter own;
  own.add(instance->transportBytes()).add(checkpoints.stagedBytes());
  own.add(uint32_t(arenas.size()));
  for (const ArenaBytes &arena : arenas)
    own.add(arena).addText(instance->describeCores(arena.device));
  std::vector<std::string> all = peers.gather(std::move(own.bytes));
  arenas.clear();
  for (size_t rank = 0; peers.isRoot() && rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    transportBytes.push_back(reader.take<uint64_t>());
    stagedBytes += reader.take<uint64_t>();
    for (auto left = reader.take<uint32_t>(); left > 0; --left) {
      arenas.push_back(reader.take<ArenaBytes>());
      cores.push_back(reader.takeText());
    }
  }
  return {};
}

Error penstock_run::open(Error mistake) {
  Error error = peers.join(options);
  if (error)
    return mistake ? mistake : error;
  error = mistake ? std::move(mistake) : openInputs();
  if (Error refusal = peers.meet(describe(error)))
    return refusal;
  error = peers.agree(openInstances());
  if (!error)
    error = startFromCheckpoint();
  if (error)
    return error;
  // Where one fails, others wait for it: all end at once.
  if (instance->connects())
    if (Error failure = connect())
      return failure;
  if (Error failure = gatherArenas())
    return failure;
  if (!options.memory.empty() && peers.isRoot())
    error = writeMemory(options.memory, program, arenas, transportBytes,
                        stagedBytes);
  return options.memory.empty() ? Error() : peers.agree(std::move(error));
}

std::string penstock_run::describeTraining() const {
  long long updates = requestedUpdates();
  long long microbatches =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN)->microbatches;
  std::string text =
      format("training: %lld updates of %lld x %lld samples", updates,
             microbatches, (long long)program.microbatch_size);
  if (!hasTrainData)
    return text;
  long long update = microbatches * program.microbatch_size;
  long long samples = trainData.sampleCount(), usable = trainData.usableCount();
  text += format(", of %lld samples in passes of %lld updates", samples,
                 usable / update);
  if (samples > usable && options.shuffle)
    text += format("; each pass leaves out %lld of them (--last=wrap takes "
                   "them in)",
                   samples - usable);
  else if (samples > usable)
    text += format("; the last %lld of them are never used (--last=wrap takes "
                   "them in)",
                   samples - usable);
  else if (samples < usable && options.last == Last::Wrap)
    text += format("; the last update begins again with %lld of them",
                   usable - samples);
  else if (samples < usable)
    text += format("; the last update has %lld of them", samples % update);
  return text;
}

int64_t penstock_run::passUpdates() const {
  const penstock_schedule *train =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);
  return trainData.usableCount() /
         (program.microbatch_size * train->microbatches);
}

int64_t penstock_run::evaluationUpdates() const {
  int64_t every = options.evalEvery.value_or(0);
  if (options.isEvalEveryEpochs &&
      __builtin_mul_overflow(every, passUpdates(), &every))
    return INT64_MAX;
  return every;
}

int64_t penstock_run::requestedUpdates() const {
  if (options.steps)
    return *options.steps;
  int64_t updates = 0;
  bool isTooLong =
      __builtin_mul_overflow(*options.epochs, passUpdates(), &updates);
  return isTooLong ? kMostUpdates + 1 : updates;
}
