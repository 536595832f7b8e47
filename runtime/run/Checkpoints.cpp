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
#include "runtime/io/Json.h"
#include "runtime/io/Npy.h"
#include "runtime/run/Run.h"

#include <algorithm>

using namespace penstock::runtime;

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

void Checkpoints::prepare() {
  values = listSavedValues(program);
  offsets = placeValues(program, values);
}

Error Checkpoints::open(const std::string &folder, int64_t keep,
                        bool keepsNotFinite) {
  for (const SavedValue &value : values)
    if (!isUtf8(value.identity.name))
      return userError("--checkpoint-dir: the name of initializer '%s' is not "
                       "UTF-8, which the files of a checkpoint need",
                       value.identity.name.c_str());
  return writer.open(folder, keep, offsets.back(), keepsNotFinite);
}

void Checkpoints::begin(const Instance &instance, Manifest manifest) {
  int64_t start = nanoseconds();
  newestStep = manifest.step;
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

Error Checkpoints::writeTo(const std::string &folder, const Instance &instance,
                           Manifest manifest, bool keepsNotFinite) {
  constexpr int64_t kAll = INT64_MAX;
  CheckpointWriter other;
  if (Error error = other.open(folder, kAll, offsets.back(), keepsNotFinite))
    return error;
  begin(other, instance, std::move(manifest));
  std::string problem = other.finish();
  return problem.empty() ? Error() : userError("%s", problem.c_str());
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

/// Of a folder that another run has written to: its checkpoints would be mixed
/// with ours.
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
  std::fprintf(stderr, "warning: %s\n",
               penstock::toOneLine(checkpointError.text).c_str());
}

/// In a pause of training.
Error penstock_run::checkpointIfDue() {
  if (!checkpoints.takeRequest())
    return {};
  if (checkpoints.isBusy()) {
    progress->clear();
    std::fprintf(stderr,
                 "note: no checkpoint of update %lld: that of update %lld is "
                 "still being written\n",
                 (long long)updatesDone, (long long)checkpoints.newest());
    return {};
  }
  noteFailedCheckpoint();
  if (hasEndedForCheckpoint())
    return checkpointError;
  beginCheckpoint();
  return {};
}

Error penstock_run::checkpointLast() {
  // That of another folder moves into this one.
  bool isThere = updatesDone == checkpoints.newest() ||
                 (updatesDone == resumedAt &&
                  (resumedFrom.empty() ||
                   sameFile(folderOf(resumedFrom), checkpoints.getFolder())));
  if (!checkpoints.isOpen() || isThere ||
      (!notFiniteText.empty() && !options.warnsOfNotFinite))
    return {};
  if (Error error = checkFolder())
    return error;
  noteFailedCheckpoint();
  if (!hasEndedForCheckpoint())
    beginCheckpoint();
  return {};
}

Error penstock_run::checkpoint(const std::string &folder) {
  if (!findSchedule(program, PENSTOCK_SCHEDULE_TRAIN))
    return userError("this program was not compiled for training");
  if (!peers.isAlone())
    return userError("several processes write no checkpoints");
  bool isOwn = checkpoints.isOpen() &&
               (folder.empty() || sameFile(folder, checkpoints.getFolder()));
  if (folder.empty() && !isOwn)
    return userError("a checkpoint needs a folder, or the option "
                     "checkpoint-dir");
  if (!isOwn)
    return checkpoints.writeTo(folder, *instance, describeCheckpoint(),
                               options.warnsOfNotFinite);
  if (Error error = checkFolder())
    return error;
  (void)checkpoints.takeRequest();
  noteFailedCheckpoint();
  if (checkpoints.newest() != updatesDone || checkpointError)
    beginCheckpoint();
  return finishCheckpoint();
}
