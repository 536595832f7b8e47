//===- Resume.cpp - From a checkpoint to a program ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights have to be there, one for one. Optimizer state has to be there for
// what trained. What a method keeps may begin anew.
//===----------------------------------------------------------------------===//

#include "runtime/run/Resume.h"

#include "penstock/one_line.h"
#include "runtime/io/Npy.h"
#include "runtime/job/Bytes.h"
#include "runtime/run/Run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

using namespace penstock::runtime;

namespace {

class Planner {
public:
  Planner(const std::string &path, const Manifest &manifest,
          const ResumeTarget &target, ResumePlan &plan)
      : path(path), manifest(manifest), target(target), program(target.program),
        plan(plan) {}

  Error run();

private:
  struct Source {
    const ManifestFile *file = nullptr;
    const ManifestTensor *tensor = nullptr;
  };

  void collectSources();
  Identity identifyState(uint32_t variable) const;
  void noteWorkers();
  Error convertStep();
  void readWeights();
  Error readOptimizer();
  void readMethod();
  void readBeside();
  void readAverage(uint32_t variable, const Identity &identity,
                   std::set<std::string> &averaged);
  void noteRest();
  Error describeDifferences() const;

  const Source *find(const Identity &identity) const {
    auto found = sources.find(identity);
    return found == sources.end() ? nullptr : &found->second;
  }
  /// The tensor that a variable takes, if it has its type and shape.
  const Source *findFor(uint32_t variable, const Identity &identity);
  void read(uint32_t variable, const Source *source) {
    plan.reads[variable] =
        source ? ResumeRead{variable, source->file, source->tensor}
               : ResumeRead{variable};
  }

  const std::string &path;
  const Manifest &manifest;
  const ResumeTarget &target;
  const penstock_program &program;
  ResumePlan &plan;
  std::map<Identity, Source> sources;
  std::set<Identity> taken;
  std::vector<std::string> differences;
  /// Those that did not train before.
  std::set<std::string> fresh;
  /// Whose optimizers have state in the checkpoint.
  uint32_t savedWorkers = 1;
};

/// "'a', 'b', 'c' and 4 more".
std::string listNames(const std::set<std::string> &names) {
  constexpr size_t kMost = 3;
  std::string text;
  size_t count = 0;
  for (const std::string &name : names) {
    if (count++ == kMost)
      break;
    text += (text.empty() ? "'" : ", '") + name + "'";
  }
  if (names.size() > kMost)
    text += format(" and %zu more", names.size() - kMost);
  return text;
}

std::string listKinds(const std::set<std::string> &kinds) {
  std::string text;
  for (const std::string &kind : kinds)
    text += (text.empty() ? "" : ", ") + kind;
  return text;
}

/// A method without its parameters.
std::string nameOf(const std::string &spec) {
  return spec.substr(0, spec.find(':'));
}

} // namespace

void Planner::collectSources() {
  for (const ManifestFile &file : manifest.files)
    for (const ManifestTensor &tensor : file.tensors) {
      sources[{tensor.kind, tensor.name}] = {&file, &tensor};
      savedWorkers = std::max(savedWorkers, parseWorker(tensor.kind) + 1);
    }
}

/// Where there were as many workers, each has its own state of the optimizer,
/// else all have that of the first.
Identity Planner::identifyState(uint32_t variable) const {
  Identity identity = identify(program, variable);
  if (savedWorkers != std::max(program.worker_count, 1u))
    identity.kind.resize(
        std::min(identity.kind.find('@'), identity.kind.size()));
  return identity;
}

void Planner::noteWorkers() {
  uint32_t workers = std::max(program.worker_count, 1u);
  if (savedWorkers == workers)
    return;
  if (savedWorkers == 1)
    plan.notes.push_back(format("all %u workers begin with the same state of "
                                "the optimizer",
                                workers));
  else
    plan.notes.push_back(
        format("the state of the optimizer is that of the first of %u workers",
               savedWorkers));
}

/// The updates of the program that come to the samples that are done.
Error Planner::convertStep() {
  plan.step = 0;
  if (target.isWeightsOnly)
    return {};
  int64_t done = manifest.step, update = manifest.samplesPerUpdate;
  int64_t samples = 0;
  if (__builtin_mul_overflow(done, update, &samples) ||
      samples != manifest.samples || done > kMostUpdates)
    return userError("%s/manifest.json: %lld updates of %lld samples do not "
                     "come to %lld samples",
                     path.c_str(), (long long)done, (long long)update,
                     (long long)manifest.samples);
  int64_t pass = manifest.samplesPerPass;
  bool isPassAlike =
      pass == target.samplesPerPass || !pass || !target.samplesPerPass;
  plan.step = done;
  if (isPassAlike && update == target.samplesPerUpdate)
    return {};
  if (!update || !target.samplesPerUpdate)
    return userError("%s: its updates have %lld samples, and those of this "
                     "program %lld",
                     path.c_str(), (long long)update,
                     (long long)target.samplesPerUpdate);

  // 1. The pass goes on in the middle where it is cut alike, else it ends.
  if (isPassAlike) {
    int64_t multiple =
        target.samplesPerUpdate / std::gcd(update, target.samplesPerUpdate);
    if (samples % target.samplesPerUpdate != 0)
      return userError(
          "%s: %lld samples are done, which are no whole number of updates of "
          "%lld; train what wrote it to update %lld, or use --resume-weights",
          path.c_str(), (long long)samples, (long long)target.samplesPerUpdate,
          (long long)((done / multiple + 1) * multiple));
    plan.step = samples / target.samplesPerUpdate;
  } else {
    if (samples % pass != 0)
      return userError(
          "%s: a pass over the data had %lld samples and has %lld now, and "
          "this "
          "is in the midst of one; train what wrote it to update %lld, the end "
          "of the pass, or use --resume-weights",
          path.c_str(), (long long)pass, (long long)target.samplesPerPass,
          (long long)((samples / pass + 1) * (pass / update)));
    plan.step =
        samples / pass * (target.samplesPerPass / target.samplesPerUpdate);
  }
  if (plan.step > kMostUpdates)
    return userError("%s: %lld updates are more than %lld", path.c_str(),
                     (long long)plan.step, (long long)kMostUpdates);
  if (plan.step != done)
    plan.notes.push_back(format("update %lld of %lld samples is update %lld of "
                                "%lld samples here",
                                (long long)done, (long long)update,
                                (long long)plan.step,
                                (long long)target.samplesPerUpdate));
  return {};
}

const Planner::Source *Planner::findFor(uint32_t variable,
                                        const Identity &identity) {
  const Source *source = find(identity);
  if (!source)
    return nullptr;
  taken.insert(identity);
  const penstock_variable &own = program.variables[variable];
  std::vector<int64_t> shape = shapeInFile(own);
  const ManifestTensor &tensor = *source->tensor;
  if (tensor.element == own.type.element && tensor.shape == shape)
    return source;
  auto text = [](uint32_t element, const std::vector<int64_t> &extents) {
    return std::string(elementName(element)) + " " +
           shapeText(extents.data(), extents.size());
  };
  differences.push_back(
      "'" + fileNameOf(tensor) + "' is " + text(tensor.element, tensor.shape) +
      " in the checkpoint and " + text(own.type.element, shape) + " here");
  return nullptr;
}

void Planner::readWeights() {
  bool isSameModel = false;
  if (program.file_count) {
    std::string digest;
    for (uint8_t byte : program.files[0].digest)
      digest += format("%02x", byte);
    isSameModel = digest == manifest.model;
  }
  std::map<const penstock_placement *, const Source *> atPlace;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.role != PENSTOCK_ROLE_PARAMETER &&
        variable.role != PENSTOCK_ROLE_STATISTIC)
      continue;
    Identity identity = identify(program, i);
    bool isThere = find(identity);
    if (const Source *source = findFor(i, identity)) {
      read(i, source);
      // Initializers that train as one have one value.
      const Source *first =
          atPlace.try_emplace(variable.placements, source).first->second;
      if (!variable.file_order &&
          first->tensor->checksum != source->tensor->checksum)
        differences.push_back("'" + identity.name + "' trains as '" +
                              first->tensor->name +
                              "' here, which has other values");
      continue;
    }
    if (isThere || variable.frozen || identity.name != variable.name)
      continue;
    // What did not train is in the model, if it is the same one.
    if (isSameModel)
      fresh.insert(identity.name);
    else
      differences.push_back("'" + identity.name + "' is here only");
  }
  for (const auto &[identity, source] : sources)
    if (identity.kind.empty() && !taken.contains(identity))
      differences.push_back("'" + identity.name +
                            "' is in the checkpoint only, or a constant here");
  if (!isSameModel && differences.empty())
    plan.notes.push_back("the model is another file than that of the "
                         "checkpoint, with the same weights");
  if (!fresh.empty())
    plan.notes.push_back(listNames(fresh) +
                         " did not train before: as in the model");
}

Error Planner::describeDifferences() const {
  constexpr size_t kMost = 20;
  if (differences.empty())
    return {};
  Error error =
      userError("%s does not fit this program, which was compiled of "
                "'%s': %zu difference%s",
                path.c_str(), program.file_count ? program.files[0].path : "",
                differences.size(), differences.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(differences.size(), kMost); ++i)
    error.details.push_back(differences[i]);
  if (differences.size() > kMost)
    error.details.push_back(format("and %zu more", differences.size() - kMost));
  return error;
}

Error Planner::readOptimizer() {
  std::set<std::string> missing, kinds;
  bool isAnyRead = false;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.role != PENSTOCK_ROLE_OPTIMIZER &&
        variable.role != PENSTOCK_ROLE_MASTER)
      continue;
    Identity identity = identifyState(i);
    if (const Source *source = findFor(i, identity)) {
      read(i, source);
      isAnyRead = true;
    } else if (!fresh.contains(identity.name)) {
      missing.insert(identity.name);
      kinds.insert(identity.kind);
    }
  }
  if (isAnyRead)
    noteWorkers();
  if (missing.empty() || !differences.empty())
    return {};
  return userError(
      "%s: %s needs %s of %s, and the checkpoint, of %s, has none; "
      "--resume-weights takes the weights alone and begins at "
      "update 0",
      path.c_str(), target.optimizer.c_str(), listKinds(kinds).c_str(),
      listNames(missing).c_str(), manifest.optimizer.c_str());
}

void Planner::readMethod() {
  // The same word means other things to other methods.
  bool isSameMethod = nameOf(manifest.method) == nameOf(target.method);
  std::set<std::string> anew, averaged;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (variable.role != PENSTOCK_ROLE_COMPENSATION || variable.transient)
      continue;
    Identity identity = identify(program, i);
    // A copy of the weight.
    if (identity.kind.empty()) {
      read(i, find(identity));
      continue;
    }
    if (isAverage(variable)) {
      readAverage(i, identity, averaged);
      continue;
    }
    if (isSameMethod && find(identity)) {
      read(i, findFor(i, identity));
      continue;
    }
    // Adjusted weights begin as the weights, averages at zero.
    anew.insert(identity.kind);
    bool isWeight = variable.file >= 0;
    read(i, isWeight ? find({"", identity.name}) : nullptr);
  }
  if (!anew.empty() && !target.isWeightsOnly)
    plan.notes.push_back(listKinds(anew) + " begin" +
                         (anew.size() == 1 ? "s" : "") +
                         " anew, as at the start of training");
  if (!averaged.empty() && !target.isWeightsOnly)
    plan.notes.push_back("the averages of " + listNames(averaged) +
                         " begin as the weights of the checkpoint");
}

/// Lets all that begins as the weights do follow them, of weights alone.
void Planner::readBeside() {
  std::set<std::string> averaged;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    Identity identity = identify(program, i);
    if (isAverage(variable) || variable.role == PENSTOCK_ROLE_MASTER)
      readAverage(i, identity, averaged);
    else if (variable.role == PENSTOCK_ROLE_COMPENSATION && variable.file >= 0)
      read(i, find({"", identity.name}));
  }
}

/// Without an average in the checkpoint, it begins as the weight is there.
void Planner::readAverage(uint32_t variable, const Identity &identity,
                          std::set<std::string> &averaged) {
  if (!target.isWeightsOnly) {
    if (const Source *source = findFor(variable, identity))
      return read(variable, source);
    if (!fresh.contains(identity.name))
      averaged.insert(identity.name);
  }
  const Source *master = find({"master", identity.name});
  read(variable, master ? master : find({"", identity.name}));
}

/// Notes what the checkpoint has and this program has no use for.
void Planner::noteRest() {
  std::set<std::string> kinds;
  for (const auto &[identity, source] : sources)
    if (!identity.kind.empty() && !taken.contains(identity))
      kinds.insert(identity.kind);
  if (!kinds.empty() && !target.isWeightsOnly)
    plan.notes.push_back("left out, as this program does not need it: " +
                         listKinds(kinds));
}

Error Planner::run() {
  plan = {};
  plan.reads.resize(program.variable_count);
  for (uint32_t i = 0; i < program.variable_count; ++i)
    plan.reads[i].variable = i;
  collectSources();
  readWeights();
  Error missing = target.isWeightsOnly ? Error() : readOptimizer();
  if (target.isWeightsOnly) {
    readBeside();
  } else {
    readMethod();
  }
  if (Error error = describeDifferences())
    return error;
  if (missing)
    return missing;
  if (Error error = convertStep())
    return error;
  if (nameOf(manifest.method) != nameOf(target.method) && !target.isWeightsOnly)
    plan.notes.push_back("the method was " + manifest.method + " and is " +
                         target.method + " now");
  noteRest();
  std::erase_if(plan.reads, [&](const ResumeRead &read) {
    return !isState(program.variables[read.variable]);
  });
  return {};
}

Error penstock::runtime::planResume(const std::string &path,
                                    const Manifest &manifest,
                                    const ResumeTarget &target,
                                    ResumePlan &plan) {
  return Planner(path, manifest, target, plan).run();
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

/// Describes the damage of a checkpoint, and which one to take instead.
static Error describeDamage(const std::string &path,
                            const std::string &problem) {
  std::string other = findOtherWhole(path);
  if (other.empty())
    return userError("%s; no other checkpoint beside it is whole",
                     problem.c_str());
  return userError("%s; %s is whole: resume with --resume %s", problem.c_str(),
                   other.c_str(), other.c_str());
}

/// Sets the variables of a program, whose values the plan says.
Error penstock_run::readResumed(const Checkpoint &from, Instance &target,
                                ResumePlan &plan) {
  std::vector<Instance::Source> sources;
  std::map<const ManifestFile *, MappedFile> mapped;
  std::set<const penstock_placement *> places;
  for (const ResumeRead &read : plan.reads) {
    const penstock_variable &variable = target.program.variables[read.variable];
    // One place may have the values of several initializers.
    if (variable.file_order || !target.hasAny(variable) ||
        !places.insert(variable.placements).second)
      continue;
    if (!read.tensor) {
      if (variable.file >= 0)
        sources.push_back({&variable, files[size_t(variable.file)].data() +
                                          variable.file_offset});
      continue;
    }
    auto [file, isNew] = mapped.try_emplace(read.file);
    if (isNew)
      if (std::string problem =
              mapCheckpointFile(from, *read.file, file->second);
          !problem.empty())
        return describeDamage(from.path, problem);
    if (std::string problem =
            checkTensor(from, *read.file, *read.tensor, file->second);
        !problem.empty())
      return describeDamage(from.path, problem);
    sources.push_back({&variable, file->second.data() + read.tensor->offset});
  }
  return target.goOn(sources, plan.step);
}

/// Notes facts that were different before, which a run may change, but not
/// unnoticed.
void penstock_run::noteChanges(const Manifest &before) {
  auto note = [](const std::string &text) {
    std::fprintf(stderr, "note: %s\n", penstock::toOneLine(text).c_str());
  };
  Manifest now = describeCheckpoint();
  if (before.shuffle != now.shuffle)
    note(std::string("the samples were ") +
         (before.shuffle ? "shuffled, and are not now; add --shuffle"
                         : "not shuffled, and are now"));
  if (before.seed != now.seed)
    note(format("the seed was %lld and is %lld now", (long long)before.seed,
                (long long)now.seed));
  if (before.last != now.last && hasTrainData &&
      trainData.sampleCount() % now.samplesPerUpdate != 0)
    note("the samples that fill no update were treated by --last=" +
         before.last + ", and are by --last=" + now.last + " now");
  if (before.rate != now.rate)
    note(format("the learning rate was %.9g and is %.9g now", before.rate,
                now.rate));
  for (const ManifestData &array : now.data)
    for (const ManifestData &other : before.data)
      if (array.name == other.name && array.checksum != other.checksum)
        note("'" + array.name +
             "' is another array than the one that was read so far");
  if (!checkpoints.isAsynchronous())
    return;
  if (before.checkpointEvery && before.checkpointEvery != now.checkpointEvery)
    note(format("the run so far drained every %lld updates, for "
                "--checkpoint-every",
                (long long)before.checkpointEvery));
  if (before.evalEvery && before.evalEvery != now.evalEvery)
    note(format("the run so far drained every %lld updates, for --eval-every",
                (long long)before.evalEvery));
}

/// Evaluations go on where they were, by the same metric.
void penstock_run::restoreEvaluations(const Manifest &before) {
  const ManifestEvaluation &state = before.evaluation;
  if (state.step < 0 || isRecounted)
    return;
  if (state.bestStep >= 0 && state.metric != options.bestMetric) {
    if (options.evaluates() && peers.isRoot())
      std::fprintf(stderr,
                   "note: the best evaluation was by %s and is by %s now, and "
                   "begins anew\n",
                   penstock::toOneLine(state.metric).c_str(),
                   options.bestMetric.c_str());
    return;
  }
  evaluations = state;
}

Error penstock_run::findResumed(const std::string &path,
                                Checkpoint &checkpoint) {
  std::string found = findCheckpoint(path);
  if (found.empty())
    return userError("--resume: '%s' holds no checkpoints", path.c_str());
  if (std::string problem = readCheckpoint(found, checkpoint); !problem.empty())
    return describeDamage(found, problem);
  return {};
}

/// Other processes read the same checkpoint as rank 0.
Error penstock_run::shareResumed(const std::string &path,
                                 Checkpoint &checkpoint) {
  if (peers.isAlone())
    return {};
  // 1. Its name in the folder, which may have another path on each host.
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  ByteWriter words;
  if (peers.isRoot())
    words.addText(checkpoint.path.substr(folder.size()))
        .addText(checkpoint.checksum);
  std::string bytes = peers.broadcast(std::move(words.bytes));
  if (peers.isRoot())
    return {};
  ByteReader reader(bytes);
  std::string name = reader.takeText(), checksum = reader.takeText();

  // 2. The manifest is that of rank 0.
  std::string found = folder + name;
  std::string problem = readCheckpoint(found, checkpoint);
  if (checkpoint.checksum != checksum)
    return userError("--resume: '%s' is not the checkpoint that rank 0 reads; "
                     "give a folder that all hosts share",
                     found.c_str());
  return problem.empty() ? Error() : describeDamage(found, problem);
}

/// Sets the variables that are here, in the program and in the one that
/// verifies it.
Error penstock_run::goOnFrom(const Checkpoint &checkpoint, ResumePlan &plan) {
  auto makeTarget = [&](const penstock_program &each) {
    return ResumeTarget{
        each,
        program.method,
        program.optimizer,
        findSchedule(program, PENSTOCK_SCHEDULE_TRAIN)->microbatches *
            program.microbatch_size,
        hasTrainData ? trainData.usableCount() : 0,
        options.resumeWeights};
  };
  if (Error error = planResume(checkpoint.path, checkpoint.manifest,
                               makeTarget(program), plan))
    return error;
  if (Error error = readResumed(checkpoint, *instance, plan))
    return error;
  if (!oneDevice)
    return {};
  ResumePlan replayPlan;
  if (Error error = planResume(checkpoint.path, checkpoint.manifest,
                               makeTarget(*program.replay), replayPlan))
    return error;
  return readResumed(checkpoint, *oneDevice, replayPlan);
}

Error penstock_run::resume(const std::string &path) {
  if (!findSchedule(program, PENSTOCK_SCHEDULE_TRAIN))
    return userError("this program was not compiled for training");
  if (!segments.empty() || !resumedFrom.empty())
    return userError("a run goes on from a checkpoint before it trains");
  // 1. Rank 0 says which one it is, and all take their part of it.
  Checkpoint checkpoint;
  Error error = peers.isRoot() ? findResumed(path, checkpoint) : Error();
  if (Error failure = peers.agree(std::move(error)))
    return failure;
  ResumePlan plan;
  error = shareResumed(path, checkpoint);
  if (!error)
    error = goOnFrom(checkpoint, plan);
  if (Error failure = peers.agree(std::move(error)))
    return failure;

  // 2. What is said of it.
  if (peers.isRoot())
    for (const std::string &text : plan.notes)
      std::fprintf(stderr, "note: %s\n", penstock::toOneLine(text).c_str());
  if (options.resumeWeights)
    return {};
  if (peers.isRoot())
    noteChanges(checkpoint.manifest);
  resumedFrom = checkpoint.path;
  resumedAt = updatesDone = loggedUpdates = plan.step;
  isRecounted = plan.step != checkpoint.manifest.step;
  restoreEvaluations(checkpoint.manifest);
  if (!isRecounted)
    earlierSegments = checkpoint.manifest.segmentStarts;
  return {};
}
