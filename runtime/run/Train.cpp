//===- Train.cpp - Segments of training and evaluation --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts the device functions and turns what the sinks deliver into log lines
// and results.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"
#include "runtime/io/Finite.h"
#include "runtime/run/Run.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace penstock::runtime;

/// Writes a line for each update whose losses are all there.
void penstock_run::logUpdates(SinkValues &values,
                              const penstock_schedule &schedule) {
  uint64_t microbatches = schedule.microbatches;
  // Training may count labels, too; only evaluation adds them up.
  values.corrects.clear();
  values.counts.clear();
  while (values.losses.size() >= microbatches) {
    // 1. The mean, in the order of the microbatches.
    double sum = 0;
    int64_t time = 0;
    uint64_t firstNotFinite = microbatches;
    for (uint64_t i = 0; i < microbatches; ++i) {
      const SinkRing::Item &item = values.losses[i];
      sum += floatOf(item);
      if (!std::isfinite(sum))
        firstNotFinite = std::min(firstNotFinite, i);
      time = std::max(time, item.time);
      if (options.verify)
        losses.push_back(floatOf(item));
    }
    values.losses.erase(values.losses.begin(),
                        values.losses.begin() + microbatches);
    double loss = sum / double(microbatches);
    double rate = instance->findHyperparameter("lr");
    if (program.rate)
      rate = program.rate(nullptr, float(rate), loggedUpdates);

    // 2. Log and progress.
    double seconds = double(time - startTime) * 1e-9;
    ++loggedUpdates;
    if (!std::isfinite(loss))
      noteNotFinite(loss, loggedUpdates, firstNotFinite);
    if (!logError)
      logError = log.write(loggedUpdates, loss, rate, seconds);
    double samples =
        double(loggedUpdates) * double(microbatches) * program.microbatch_size;
    progress->show(loggedUpdates, loss, samples / seconds);
  }
}

/// Once, of the first of them.
void penstock_run::noteNotFinite(double loss, int64_t update,
                                 uint64_t microbatch) {
  if (!notFiniteText.empty())
    return;
  int64_t microbatches =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN)->microbatches;
  std::string reason =
      trainData.suspects((update - 1) * microbatches, microbatches);
  notFiniteText =
      format("the loss is %g at update %lld, microbatch %llu of %lld: %s", loss,
             (long long)update, (unsigned long long)microbatch + 1,
             (long long)microbatches, reason.c_str());
  if (!options.warnsOfNotFinite)
    return;
  progress->clear();
  std::fprintf(stderr, "warning: %s\n",
               penstock::toOneLine(notFiniteText).c_str());
}

bool penstock_run::isStopping() const {
  return isStopRequested() ||
         (!notFiniteText.empty() && !options.warnsOfNotFinite);
}

/// The first of the saved variables, by stage, or null.
const penstock_variable *penstock_run::findNotFinite() {
  const penstock_variable *first = nullptr;
  std::vector<char> values;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (!isSaved(variable) || (first && first->stage <= variable.stage))
      continue;
    values.resize(variable.type.bytes);
    instance->read(variable, updatesDone, values.data());
    if (!areFinite(variable.type, values.data()))
      first = &variable;
  }
  return first;
}

Error penstock_run::describeNotFinite() {
  if (const penstock_variable *variable = findNotFinite())
    return notFinite("%s; after update %lld, '%s' of stage %u is not finite",
                     notFiniteText.c_str(), (long long)updatesDone,
                     variable->name, variable->stage);
  return notFinite("%s; after update %lld, all weights are finite",
                   notFiniteText.c_str(), (long long)updatesDone);
}

Error penstock_run::train(int64_t updates) {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);
  if (!schedule)
    return userError("this program was not compiled for training");
  if (!hasTrainData) {
    // Says what is missing; a program without sources misses nothing.
    if (Error error = trainData.open(program, {}, "", "data", "labels"))
      return error;
    if (Error error = trainData.setUpdate(schedule->microbatches, "data"))
      return error;
  }
  if (options.epochs && requestedUpdates() > kMostUpdates)
    return userError("--epochs: %lld come to more than %lld updates",
                     (long long)*options.epochs, (long long)kMostUpdates);
  if (!options.log.empty() && !log.isOpen())
    if (Error error = log.open(options.log))
      return error;
  if (updates <= 0)
    return {};
  for (; updates > 1 && updatesDone < program.flushed_updates && !isStopping();
       --updates)
    if (Error error = train(1))
      return error;
  if (!notFiniteText.empty() && !options.warnsOfNotFinite)
    return describeNotFinite();
  if (isStopping())
    return {};

  // 1. Run.
  int64_t begin = nanoseconds();
  if (segments.empty())
    startTime = begin;
  std::vector<int64_t> waited;
  for (const auto &device : instance->devices())
    waited.push_back(device->statistics().waitedNanoseconds);
  SinkValues values;
  progress->begin(
      std::max(options.steps || options.epochs ? requestedUpdates() : 0,
               updatesDone + updates));
  Watchdog watchdog(instance->positions(), options.watchdog.value_or(0));
  Error error = instance->run(*schedule, updatesDone, updates, updatesDone,
                              trainData, [&] {
                                values.collect(*instance);
                                logUpdates(values, *schedule);
                                if (isStopping())
                                  instance->shrink();
                                watchdog.check();
                              });
  if (error) {
    progress->clear();
    return error;
  }
  logUpdates(values, *schedule);

  // 2. Account.
  trainSeconds += double(nanoseconds() - begin) * 1e-9;
  for (const auto &device : instance->devices())
    waitSeconds[device->index] +=
        double(device->statistics().waitedNanoseconds - waited[device->index]) *
        1e-9;
  segments.push_back({updatesDone, instance->updatesRun()});
  updatesDone += instance->updatesRun();
  progress->clear();
  if (!notFiniteText.empty() && !options.warnsOfNotFinite)
    return describeNotFinite();
  return {};
}

Error penstock_run::evaluate(penstock_results &results) {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_EVALUATE);
  if (!schedule)
    return userError("this program was compiled without evaluation");
  if (!hasEvalData)
    return userError("--eval-data is missing");
  int64_t microbatches = evalData.usableCount() / evalData.microbatchSize();
  SinkValues values;
  Watchdog watchdog(instance->positions(), options.watchdog.value_or(0));
  Error error =
      instance->run(*schedule, 0, microbatches, updatesDone, evalData, [&] {
        values.collect(*instance);
        watchdog.check();
      });
  if (error)
    return error;
  if (int64_t(values.losses.size()) != microbatches)
    return defect("evaluation of %lld microbatches gave %zu losses",
                  (long long)microbatches, values.losses.size());

  // The mean over labels: each microbatch counts by the labels in it.
  bool hasCounts = values.counts.size() == values.losses.size();
  double loss = 0;
  evaluatedLabels = evaluatedCorrect = 0;
  for (int64_t i = 0; i < microbatches; ++i) {
    int64_t count =
        hasCounts ? integerOf(values.counts[i]) : evalData.microbatchSize();
    // A microbatch without labels has no mean.
    if (count > 0)
      loss += double(floatOf(values.losses[i])) * double(count);
    evaluatedLabels += count;
  }
  for (const SinkRing::Item &item : values.corrects)
    evaluatedCorrect += integerOf(item);
  results.loss = loss / double(evaluatedLabels);
  results.accuracy = values.corrects.empty()
                         ? -1
                         : double(evaluatedCorrect) / double(evaluatedLabels);
  results.samples = evalData.usableCount();
  results.samples_left_out = evalData.sampleCount() - evalData.usableCount();
  return {};
}

Error penstock_run::save(const std::string &path) {
  if (!options.warnsOfNotFinite)
    if (const penstock_variable *variable = findNotFinite())
      return notFinite("'%s' is not written, because '%s' is not finite; "
                       "--on-nan=warn writes it",
                       path.c_str(), variable->name);
  if (path != options.save)
    if (Error error = writer->check(path))
      return error;
  return writer->write(path,
                       [&](const penstock_variable &variable, char *values) {
                         instance->read(variable, updatesDone, values);
                       });
}

Error penstock_run::writeTraceOnce() {
  if (options.trace.empty() || isTraceWritten || startTime == 0)
    return {};
  isTraceWritten = true;
  std::vector<const TraceBuffer *> buffers;
  uint64_t lost = 0;
  for (const auto &device : instance->devices()) {
    buffers.push_back(device->trace.get());
    lost += device->trace->lost();
  }
  if (lost)
    std::fprintf(stderr,
                 "warning: --trace: the last %llu slices are left out\n",
                 (unsigned long long)lost);
  return writeTrace(options.trace, program, buffers, startTime);
}

Error penstock_run::finish() {
  if (Error error = writeTraceOnce())
    return error;
  return std::exchange(logError, Error());
}
