//===- Checkpoints.cpp - The checkpoints that a run writes ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When a run writes them, what they say of it, and what happens to the run when
// one cannot be written.
//===----------------------------------------------------------------------===//

#include "runtime/run/Checkpoints.h"

#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/io/Json.h"
#include "runtime/job/Bytes.h"
#include "runtime/run/Run.h"

#include <algorithm>

using namespace penstock::runtime;

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

void Checkpoints::prepare(const Job &job) {
  values = listSavedValues(program);
  std::erase_if(values, [&](const SavedValue &value) {
    return !job.has(program.variables[value.home].placements->device);
  });
  offsets = placeValues(program, values);
}

Error Checkpoints::open(CheckpointRanks &ranks, CheckpointWriter &target,
                        const std::string &folder, int64_t keep,
                        bool keepsNotFinite) {
  for (const SavedValue &value : values)
    if (!isUtf8(value.identity.name))
      return userError("--checkpoint-dir: the name of initializer '%s' is not "
                       "UTF-8, which the files of a checkpoint need",
                       value.identity.name.c_str());
  return target.open(folder, keep, offsets.back(), keepsNotFinite, ranks);
}

void Checkpoints::begin(const Instance &instance, Manifest manifest) {
  int64_t start = nanoseconds();
  newestStep = manifest.step;
  newestTime = start;
  isAwaited = false;
  begin(writer, instance, std::move(manifest));
  pauseSeconds += double(nanoseconds() - start) * 1e-9;
}

void Checkpoints::begin(CheckpointWriter &target, const Instance &instance,
                        Manifest manifest) {
  // 1. The values, where a transposed copy of one shares its bytes.
  char *block = target.beginStaging().data();
  std::vector<Instance::Target> targets;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].home == values[i].variable)
      targets.push_back(
          {&program.variables[values[i].home], block + offsets[i]});
  instance.read(targets, manifest.step);

  // 2. What they are.
  std::vector<StagedTensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const penstock_variable &variable = program.variables[values[i].variable];
    StagedTensor &tensor = tensors.emplace_back();
    tensor.variable = &variable;
    tensor.values = block + offsets[i];
    tensor.description.name = values[i].identity.name;
    tensor.description.kind = values[i].identity.kind;
    tensor.description.element = variable.type.element;
    tensor.description.shape = shapeInFile(variable);
  }
  target.start(std::move(manifest), std::move(tensors));
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

Manifest penstock_run::describeCheckpoint() {
  constexpr size_t kMostSegments = 64;
  const penstock_schedule &schedule =
      *findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);
  Manifest manifest;
  manifest.step = updatesDone;
  manifest.microbatches = schedule.microbatches;
  manifest.samplesPerUpdate = schedule.microbatches * program.microbatch_size;
  manifest.samples = updatesDone * manifest.samplesPerUpdate;
  manifest.samplesPerPass = hasTrainData ? trainData.usableCount() : 0;
  manifest.seed =
      options.seed.value_or(int64_t(instance->findHyperparameter("seed")));
  manifest.shuffle = options.shuffle;
  manifest.last = nameOf(options.last);
  manifest.rate = instance->findHyperparameter("lr");
  manifest.method = program.method;
  manifest.schedule = program.schedule;
  manifest.optimizer = program.optimizer;
  manifest.stages = program.stage_count;
  manifest.replicas.assign(program.replicas,
                           program.replicas + program.stage_count);
  manifest.checkpointEvery = options.checkpointEvery.value_or(0);
  manifest.evalEvery = evaluationUpdates();
  manifest.evaluation = evaluations;
  manifest.segmentStarts = earlierSegments;
  for (const Segment &segment : segments)
    manifest.segmentStarts.push_back(segment.first);
  if (manifest.segmentStarts.size() > kMostSegments)
    manifest.segmentStarts.erase(manifest.segmentStarts.begin(),
                                 manifest.segmentStarts.end() - kMostSegments);
  if (program.file_count)
    for (uint8_t byte : program.files[0].digest)
      manifest.model += format("%02x", byte);
  else
    manifest.model = std::string(64, '0');
  manifest.precision = program.precision == PENSTOCK_BF16 ? "bf16" : "f32";
  if (dataFacts.empty())
    dataFacts = trainData.describe();
  manifest.data = dataFacts;
  return manifest;
}

/// Updates until the next checkpoint that was asked for beforehand.
int64_t penstock_run::countToDrain() const {
  if (!checkpoints.isOpen() || !options.checkpointEvery)
    return INT64_MAX;
  return *options.checkpointEvery - updatesDone % *options.checkpointEvery;
}

/// Rejects a folder that another run has written to: its checkpoints would be
/// mixed with ours.
Error penstock_run::checkFolder() {
  if (isFolderChecked || !checkpoints.isOpen())
    return {};
  const std::string &folder = checkpoints.getFolder();
  std::vector<int64_t> steps = listCheckpoints(folder);
  isFolderChecked = steps.empty() || (!resumedFrom.empty() && !isRecounted &&
                                      steps.back() <= resumedAt);
  if (isFolderChecked)
    return {};
  std::string newest = folder + "/" + checkpointName(steps.back());
  if (resumedFrom.empty())
    return userError(
        "--checkpoint-dir: '%s' holds the checkpoints of a run, up "
        "to update %lld; go on with --resume %s, or choose another "
        "folder",
        folder.c_str(), (long long)steps.back(), folder.c_str());
  if (isRecounted)
    return userError("--checkpoint-dir: '%s' holds checkpoints of a run that "
                     "counts its updates otherwise; choose another folder",
                     folder.c_str());
  return userError("--checkpoint-dir: '%s' is later than '%s', where this run "
                   "goes on; resume the later one, or choose another folder",
                   newest.c_str(), resumedFrom.c_str());
}

/// Fails in all processes alike.
Error penstock_run::agreeOnFolder() {
  if (isFolderChecked || !checkpoints.isOpen())
    return {};
  Error error = peers.agree(peers.isRoot() ? checkFolder() : Error());
  isFolderChecked = !error;
  return error;
}

/// The processes of a run write into one folder, and know of each other's data.
Error penstock_run::joinCheckpoints() {
  if (peers.isAlone() || !checkpoints.isOpen())
    return {};
  // 1. Whoever does not see what rank 0 has written sees another folder.
  std::string run;
  for (uint8_t byte : peers.getToken())
    run += format("%02x", byte);
  if (Error error =
          peers.agree(peers.isRoot() ? checkpoints.sign(run) : Error()))
    return error;
  Error error;
  if (!isSigned(checkpoints.getFolder(), run))
    error = userError("--checkpoint-dir: '%s' is another folder here than on "
                      "rank 0; give one that all hosts share",
                      checkpoints.getFolder().c_str());
  if (Error failure = peers.agree(std::move(error)))
    return failure;

  // 2. A process knows the arrays that it reads.
  ByteWriter own;
  own.add(uint32_t(dataFacts.size()));
  for (const ManifestData &array : dataFacts) {
    own.addText(array.name).addText(array.type).addText(array.checksum);
    own.add(uint32_t(array.shape.size()));
    for (int64_t extent : array.shape)
      own.add(extent);
  }
  std::vector<std::string> all = peers.gather(std::move(own.bytes));
  for (int rank = 1; peers.isRoot() && rank < peers.getJob().size; ++rank) {
    ByteReader reader(all[rank]);
    for (auto left = reader.takeCount(1); left > 0; --left) {
      ManifestData array;
      array.name = reader.takeText();
      array.type = reader.takeText();
      array.checksum = reader.takeText();
      array.shape.resize(reader.takeCount(sizeof(int64_t)));
      for (int64_t &extent : array.shape)
        extent = reader.take<int64_t>();
      bool isKnown = std::any_of(
          dataFacts.begin(), dataFacts.end(),
          [&](const ManifestData &known) { return known.name == array.name; });
      if (!isKnown)
        dataFacts.push_back(std::move(array));
    }
  }
  std::sort(dataFacts.begin(), dataFacts.end(),
            [](const ManifestData &first, const ManifestData &second) {
              return first.name < second.name;
            });
  return {};
}

void penstock_run::beginCheckpoint() {
  checkpointError = {};
  checkpoints.begin(*instance, describeCheckpoint());
}

/// Waits for the last one, whose failure is not that of a run at once.
Error penstock_run::finishCheckpoint() {
  std::string problem = checkpoints.finish();
  if (problem.empty())
    return {};
  checkpointError =
      userError("the checkpoint of update %lld could not be written: %s",
                (long long)checkpoints.newest(), problem.c_str());
  return checkpointError;
}

void penstock_run::noteFailedCheckpoint() {
  if (!finishCheckpoint())
    return;
  progress->clear();
  std::fprintf(stderr, "%s%s\n",
               penstock::getSeverityText(penstock::Severity::Warning),
               penstock::toOneLine(checkpointError.text).c_str());
}

/// Any process may be asked for one: rank 0 hears of it.
void penstock_run::hearCheckpointRequests() {
  // A launcher that is asked forwards the signal to all processes.
  constexpr int64_t kSameRequest = 1000000000;
  bool isAsked = takeCheckpointRequest();
  if (!peers.isRoot()) {
    if (isAsked)
      peers.tell(0, Peers::kWantCheckpoint, "");
    return;
  }
  for (int rank = 1; rank < peers.getJob().size; ++rank)
    while (peers.hear(rank, Peers::kWantCheckpoint))
      isAsked = true;
  int64_t now = nanoseconds();
  if (!isAsked || (!peers.isAlone() && now - lastRequest < kSameRequest))
    return;
  lastRequest = now;
  if (checkpoints.isOpen())
    return checkpoints.request(/*isAsked=*/true);
  progress->clear();
  std::fprintf(stderr,
               "%sSIGUSR1 asks for a checkpoint, and there is none without "
               "--checkpoint-dir\n",
               penstock::getSeverityText(penstock::Severity::Note));
}

/// In a pause of training, all processes learn from rank 0 whether one begins
/// (where one `mayBegin`), and whether the last one ends the run.
bool penstock_run::agreeOnCheckpoint(bool mayBegin) {
  if (!checkpoints.isOpen())
    return false;
  struct {
    bool begins = false, endsRun = false;
  } pause;
  if (peers.isRoot()) {
    bool isDue = mayBegin && checkpoints.takeRequest();
    if (isDue && checkpoints.isBusy()) {
      isDue = false;
      if (checkpoints.skip()) {
        progress->clear();
        std::fprintf(stderr,
                     "%sno checkpoint of update %lld: that of update %lld is "
                     "still being written\n",
                     penstock::getSeverityText(penstock::Severity::Note),
                     (long long)updatesDone, (long long)checkpoints.newest());
      }
    }
    if (isDue)
      noteFailedCheckpoint();
    pause.endsRun = hasEndedForCheckpoint();
    pause.begins = isDue && !pause.endsRun;
  }
  if (!peers.isAlone()) {
    std::string bytes = peers.broadcast(ByteWriter().add(pause).bytes);
    pause = ByteReader(bytes).take<decltype(pause)>();
  }
  if (!peers.isRoot() && pause.endsRun)
    checkpointError = {PENSTOCK_USER_ERROR, ""};
  return pause.begins;
}

/// Rank 0 knows whether the last one is needed, and can be written.
Error penstock_run::decideLastCheckpoint(bool &begins) {
  // That of another folder moves into this one.
  bool isThere = updatesDone == checkpoints.newest() ||
                 (updatesDone == resumedAt &&
                  (resumedFrom.empty() ||
                   sameFile(folderOf(resumedFrom), checkpoints.getFolder())));
  if (isThere || (!notFiniteText.empty() && !options.warnsOfNotFinite))
    return {};
  if (Error error = checkFolder())
    return error;
  noteFailedCheckpoint();
  begins = !hasEndedForCheckpoint();
  return {};
}

Error penstock_run::checkpointLast() {
  if (!checkpoints.isOpen())
    return {};
  bool begins = false;
  if (Error error =
          peers.agree(peers.isRoot() ? decideLastCheckpoint(begins) : Error()))
    return error;
  if (!peers.isAlone()) {
    std::string bytes = peers.broadcast(ByteWriter().add(begins).bytes);
    begins = ByteReader(bytes).take<bool>();
  }
  if (begins)
    beginCheckpoint();
  return {};
}

Error penstock_run::checkpointElsewhere(const std::string &folder) {
  constexpr int64_t kAll = INT64_MAX;
  CheckpointWriter other;
  if (Error error = peers.agree(checkpoints.open(
          checkpointPeers, other, folder, kAll, options.warnsOfNotFinite)))
    return error;
  checkpoints.begin(other, *instance, describeCheckpoint());
  std::string problem = other.finish();
  return peers.agree(problem.empty() ? Error()
                                     : userError("%s", problem.c_str()));
}

Error penstock_run::checkpoint(const std::string &folder) {
  if (!findSchedule(program, PENSTOCK_SCHEDULE_TRAIN))
    return userError("this program was not compiled for training");
  bool isOwn = checkpoints.isOpen() &&
               (folder.empty() || sameFile(folder, checkpoints.getFolder()));
  if (folder.empty() && !isOwn)
    return userError("a checkpoint needs a folder, or the option "
                     "checkpoint-dir");
  if (!isOwn)
    return checkpointElsewhere(folder);
  if (Error error = agreeOnFolder())
    return error;
  (void)checkpoints.takeRequest();
  bool isNeeded = true;
  if (peers.isRoot()) {
    noteFailedCheckpoint();
    isNeeded = checkpoints.newest() != updatesDone || checkpointError;
  }
  if (!peers.isAlone())
    isNeeded = peers.broadcast(isNeeded ? "1" : "") == "1";
  if (isNeeded)
    beginCheckpoint();
  return peers.agree(finishCheckpoint());
}
