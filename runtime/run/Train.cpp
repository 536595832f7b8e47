//===- Train.cpp - Segments of training and evaluation --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts the device functions and turns what the sinks deliver into log lines
// and results.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/io/Finite.h"
#include "runtime/job/Bytes.h"
#include "runtime/observe/Failure.h"
#include "runtime/run/EarlyEnd.h"
#include "runtime/run/Run.h"

#include <algorithm>
#include <cmath>
#include <sys/resource.h>
#include <utility>

using namespace penstock::runtime;

/// The header of a device's slices, between processes.
struct TraceHead {
  uint32_t device, reserved;
  uint64_t count, lost;
  int64_t clockError;
};

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
    uint64_t first = uint64_t(loggedUpdates) * microbatches, counted = 0;
    uint64_t firstNotFinite = microbatches;
    for (uint64_t i = 0; i < microbatches; ++i) {
      const SinkRing::Item &item = values.losses[i];
      // One without any label that counts has no loss.
      if (!hasTrainData || !trainData.isEmpty(int64_t(first + i))) {
        sum += toFloat(item);
        ++counted;
      }
      if (!std::isfinite(sum))
        firstNotFinite = std::min(firstNotFinite, i);
      time = std::max(time, item.time);
      if (options.verify)
        losses.push_back(toFloat(item));
    }
    values.losses.erase(values.losses.begin(),
                        values.losses.begin() + microbatches);
    double loss = sum / double(counted);
    double rate = instance->findHyperparameter("lr");
    if (program.rate)
      rate = program.rate(nullptr, float(rate), loggedUpdates);

    // 2. Log and progress.
    double seconds = double(time - startTime) * 1e-9;
    ++loggedUpdates;
    lastLoss = loss;
    if (bestStep == 0 || loss < bestLoss) {
      bestLoss = loss;
      bestStep = loggedUpdates;
    }
    if (!std::isfinite(loss))
      noteNotFinite(loss, loggedUpdates, firstNotFinite);
    if (!logError)
      logError = log.write(loggedUpdates, loss, rate, seconds);
    if (!logError)
      logError = monitor.addUpdate(loggedUpdates, loss, rate);
    double samples = double(loggedUpdates - resumedAt) * double(microbatches) *
                     program.microbatch_size;
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
  notFiniteReason =
      trainData.suspects((update - 1) * microbatches, microbatches);
  notFiniteMicrobatch = (update - 1) * microbatches + int64_t(microbatch);
  notFiniteText =
      format("the loss is %g at update %lld, microbatch %llu of %lld", loss,
             (long long)update, (unsigned long long)microbatch + 1,
             (long long)microbatches);
  if (!options.warnsOfNotFinite)
    return;
  progress->clear();
  std::fprintf(
      stderr, "%s%s\n", penstock::getSeverityText(penstock::Severity::Warning),
      penstock::toOneLine(notFiniteText + ": " + notFiniteReason).c_str());
}

/// Returns the endings that this process knows of; rank 0 hears of the signals
/// of others.
Peers::Ending penstock_run::getOwnEnding() {
  Peers::Ending own;
  own.signal = getStopSignal();
  if (!own.signal && peers.isRoot())
    own.signal = peers.takeSignal();
  own.isNotFinite = !notFiniteText.empty() && !options.warnsOfNotFinite;
  return own;
}

/// Returns the first by stage of the saved variables here that are not finite,
/// or null.
const penstock_variable *penstock_run::findNotFiniteHere() const {
  const penstock_variable *first = nullptr;
  for (uint32_t i = 0; i < program.variable_count; ++i) {
    const penstock_variable &variable = program.variables[i];
    if (!isSaved(variable) || (first && first->stage <= variable.stage) ||
        !instance->has(variable.placements[0].device))
      continue;
    // In pieces: nobody has room for a second copy of a weight.
    penstock_tensor piece = variable.type;
    bool isFinite = true;
    (void)instance->readPieces(variable, updatesDone, /*copy=*/0,
                               /*inOrderOfFile=*/false,
                               [&](const char *values, uint64_t size) {
                                 piece.bytes = size;
                                 isFinite &= areFinite(piece, values);
                                 return Error();
                               });
    if (!isFinite)
      first = &variable;
  }
  return first;
}

/// The first of the saved variables of all processes, by stage, or null.
const penstock_variable *penstock_run::findNotFinite() {
  const penstock_variable *first = findNotFiniteHere();
  if (peers.isAlone())
    return first;
  auto encode = [&](const penstock_variable *variable) {
    return ByteWriter()
        .add(variable ? uint32_t(variable - program.variables) : UINT32_MAX)
        .bytes;
  };
  auto decode = [&](const std::string &bytes) -> const penstock_variable * {
    auto index = ByteReader(bytes).take<uint32_t>();
    return index < program.variable_count ? &program.variables[index] : nullptr;
  };
  for (const std::string &bytes : peers.gather(encode(first)))
    if (const penstock_variable *other =
            bytes.empty() ? nullptr : decode(bytes))
      if (!first || other->stage < first->stage ||
          (other->stage == first->stage && other < first))
        first = other;
  return decode(peers.broadcast(encode(first)));
}

/// Where that microbatch was not finite first; nothing where nobody can know.
std::string penstock_run::findNotFiniteStage() {
  std::string told =
      peers.broadcast(ByteWriter().add(notFiniteMicrobatch).bytes);
  std::optional<int32_t> own =
      instance->findNotFinite(ByteReader(told).take<int64_t>());
  constexpr int32_t kUnknown = -2;
  int32_t first = -1;
  for (const std::string &bytes :
       peers.gather(ByteWriter().add(own.value_or(kUnknown)).bytes)) {
    auto stage = bytes.empty() ? kUnknown : ByteReader(bytes).take<int32_t>();
    if (stage == kUnknown)
      return "";
    if (stage >= 0 && (first < 0 || stage < first))
      first = stage;
  }
  return first < 0 ? "" : format(", not finite from stage %d on", first);
}

Error penstock_run::describeNotFinite() {
  std::string stage = findNotFiniteStage();
  const penstock_variable *variable = findNotFinite();
  std::string after = variable ? format("'%s' of stage %u is not finite",
                                        variable->name, variable->stage)
                               : "all weights are finite";
  Error error = notFinite(
      "%s%s: %s; after update %lld, %s", notFiniteText.c_str(), stage.c_str(),
      notFiniteReason.c_str(), (long long)updatesDone, after.c_str());
  return peers.agree(peers.isRoot() ? std::move(error) : Error());
}

Error penstock_run::train(int64_t updates) {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);
  if (!schedule)
    return userError("this program was not compiled for training");
  if (!hasTrainData) {
    // Says what is missing; a program without sources misses nothing.
    Error error = trainData.open(program, {}, "", "data", "labels");
    if (!error)
      error = trainData.setUpdate(program, schedule->microbatches, Last::Drop,
                                  "data");
    if (error)
      return peers.agree(std::move(error));
  }
  if (options.epochs && requestedUpdates() > kMostUpdates)
    return peers.agree(
        userError("--epochs: %lld come to more than %lld updates",
                  (long long)*options.epochs, (long long)kMostUpdates));
  if (!options.log.empty() && !hasLog) {
    hasLog = true;
    if (Error failure = peers.agree(peers.isRoot() ? openLog() : Error()))
      return failure;
  }
  if (Error error = agreeOnFolder())
    return error;

  // A pause comes before what is left, so that what follows an evaluation in it
  // is the checkpoint.
  for (int64_t end = updatesDone + updates; updatesDone < end;) {
    ending = peers.decide(getOwnEnding());
    if (ending.isNotFinite)
      return describeNotFinite();
    bool writes = agreeOnCheckpoint(/*mayBegin=*/!ending);
    if (ending || hasEndedForCheckpoint())
      break;
    if (writes)
      beginCheckpoint();
    int64_t left = std::min(end - updatesDone, countToDrain());
    if (Error error =
            trainSegment(updatesDone < program.flushed_updates ? 1 : left))
      return error;
    if (ending)
      break;
  }
  agreeOnCheckpoint(/*mayBegin=*/false);
  return hasEndedForCheckpoint() ? checkpointError : Error();
}

/// Until the pipe drains, as soon as something asks for that.
Error penstock_run::trainSegment(int64_t updates) {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_TRAIN);

  // 1. Run.
  int64_t begin = nanoseconds();
  if (segments.empty())
    startTime = begin;
  std::vector<int64_t> waited(program.device_count);
  for (const auto &device : instance->devices())
    waited[device->index] = device->statistics().waitedNanoseconds;
  SinkValues values;
  int64_t total = options.steps || options.epochs ? requestedUpdates() : 0;
  progress->begin({std::max(total, updatesDone + updates),
                   schedule->microbatches * program.microbatch_size,
                   passUpdates(), options.progressSeconds,
                   options.hidesProgress || options.quiet});
  monitor.begin(begin);
  std::function<void()> checkProgress = watch();
  EarlyEnd earlyEnd(peers, *instance);
  auto observe = [&] {
    values.collect(*instance, peers);
    logUpdates(values, *schedule);
    publish(/*isNow=*/false);
    Peers::Ending own = getOwnEnding();
    peers.sendSignal(own.signal);
    if (checkpoints.hasFailed())
      noteFailedCheckpoint();
    hearCheckpointRequests();
    earlyEnd.step(own || checkpoints.isRequested() || hasEndedForCheckpoint());
    checkProgress();
  };
  // What follows a loss that is not finite is of no use: devices begin no more,
  // whenever this thread looks.
  constexpr int64_t kTimeToAgree = 1000000000;
  if (!options.warnsOfNotFinite)
    instance->onNotFinite([&](int64_t microbatch) {
      if (hasTrainData && trainData.isEmpty(microbatch))
        return;
      peers.isAlone() ? instance->shrink() : instance->pause(kTimeToAgree);
    });
  instance->watchForwards(!options.warnsOfNotFinite);
  Error error = instance->run(*schedule, updatesDone, updates, updatesDone,
                              trainData, observe);
  instance->onNotFinite(nullptr);
  instance->watchForwards(false);
  if (error) {
    progress->clear();
    return error;
  }
  ending = peers.finishSegment(
      observe, [&] { return earlyEnd.isBusy(); },
      [&] { return getOwnEnding(); });

  publish(/*isNow=*/true);

  // 2. Account.
  trainSeconds += double(nanoseconds() - begin) * 1e-9;
  for (const auto &device : instance->devices())
    waitSeconds[device->index] +=
        double(device->statistics().waitedNanoseconds - waited[device->index]) *
        1e-9;
  segments.push_back({updatesDone, instance->updatesRun()});
  updatesDone += instance->updatesRun();
  progress->clear();
  if (instance->updatesRun() < updates && checkpoints.isOpen() &&
      checkpoints.isAsynchronous() && peers.isRoot())
    std::fprintf(stderr,
                 "%sstopped at update %lld: this adds a drain, which "
                 "changes what follows\n",
                 penstock::getSeverityText(penstock::Severity::Note),
                 (long long)updatesDone);
  if (options.checkpointEvery && checkpoints.isOpen() &&
      updatesDone % *options.checkpointEvery == 0)
    checkpoints.request();
  return ending.isNotFinite ? describeNotFinite() : Error();
}

namespace {
/// Sums of an evaluation.
struct Sums {
  double loss = 0; // of labels
  int64_t labels = 0, correct = 0;
  /// Values of metrics that count, and of those that add up.
  std::map<std::string, int64_t> counts;
  std::map<std::string, double> errors;

  void add(const Sums &other) { subtract(other, -1); }
  Sums &subtract(const Sums &other, int64_t times) {
    loss -= other.loss * double(times);
    labels -= other.labels * times;
    correct -= other.correct * times;
    for (const auto &[name, count] : other.counts)
      counts[name] -= count * times;
    for (const auto &[name, sum] : other.errors)
      errors[name] -= sum * double(times);
    return *this;
  }
  /// False where it is not the sum of as many equal parts.
  bool divide(int64_t parts) {
    if (labels % parts != 0 || correct % parts != 0)
      return false;
    loss /= double(parts);
    labels /= parts;
    correct /= parts;
    for (auto &[name, count] : counts) {
      if (count % parts != 0)
        return false;
      count /= parts;
    }
    for (auto &[name, sum] : errors)
      sum /= double(parts);
    return true;
  }
};
} // namespace

Error penstock_run::withAverages(bool isRaw,
                                 const std::function<Error()> &doIt) {
  if (isRaw || averages.empty())
    return doIt();
  if (Error error = peers.agree(instance->exchange(averages, updatesDone)))
    return error;
  Error error = doIt();
  Error back = instance->exchange(averages, updatesDone);
  return error ? error : back;
}

Error penstock_run::evaluate(penstock_results &results) {
  return withAverages(options.evaluatesRaw,
                      [&] { return evaluateWeights(results); });
}

Error penstock_run::evaluateWeights(penstock_results &results) {
  const penstock_schedule *schedule =
      findSchedule(program, PENSTOCK_SCHEDULE_EVALUATE);
  if (!schedule)
    return userError("this program was compiled without evaluation");
  if (!hasEvalData)
    return userError("--eval-data is missing");
  int64_t microbatches = evalData.usableCount() / evalData.microbatchSize();
  SinkValues values;
  std::function<void()> checkProgress = watch();
  auto observe = [&] {
    values.collect(*instance, peers);
    hearCheckpointRequests();
    checkProgress();
  };
  if (Error error = instance->run(*schedule, 0, microbatches, updatesDone,
                                  evalData, observe))
    return error;
  peers.finishSegment(observe);
  Error error =
      peers.isRoot() ? evaluateHere(results, values, microbatches) : Error();
  if (Error failure = peers.agree(std::move(error)))
    return failure;
  shareEvaluation(results);
  return {};
}

/// Shares the consequences of an evaluation, which all processes draw.
void penstock_run::shareEvaluation(penstock_results &results) {
  if (peers.isAlone())
    return;
  ByteWriter writer;
  if (peers.isRoot()) {
    writer.add(results).add(evaluatedLabels).add(evaluatedCorrect);
    writer.add(uint32_t(metrics.size()));
    for (const Metric &metric : metrics)
      writer.addText(metric.kind->name).add(metric.value);
  }
  std::string bytes = peers.broadcast(std::move(writer.bytes));
  ByteReader reader(bytes);
  results = reader.take<penstock_results>();
  evaluatedLabels = reader.take<int64_t>();
  evaluatedCorrect = reader.take<int64_t>();
  metrics.clear();
  for (auto left = reader.takeCount(sizeof(double)); left > 0; --left) {
    const MetricKind *kind = penstock::runtime::findMetric(reader.takeText());
    auto value = reader.take<double>();
    if (kind)
      metrics.push_back({kind, value});
  }
}

/// The results, where the values are.
Error penstock_run::evaluateHere(penstock_results &results,
                                 const SinkValues &values,
                                 int64_t microbatches) {
  std::map<std::string, size_t> sizes = {{"losses", values.losses.size()}};
  for (const auto &[name, items] : values.metrics)
    sizes["values of " + name] = items.size();
  for (const auto &[name, size] : sizes)
    if (int64_t(size) != microbatches)
      return defect("evaluation of %lld microbatches gave %zu %s",
                    (long long)microbatches, size, name.c_str());

  // 1. The mean over labels: each microbatch counts by the labels in it.
  bool hasCounts = values.counts.size() == values.losses.size();
  bool hasCorrect = !values.corrects.empty();
  auto getSums = [&](int64_t i) {
    Sums sums;
    sums.labels =
        hasCounts ? toInteger(values.counts[i]) : evalData.microbatchSize();
    // A microbatch without labels has no mean.
    if (sums.labels > 0)
      sums.loss = double(toFloat(values.losses[i])) * double(sums.labels);
    if (hasCorrect)
      sums.correct = toInteger(values.corrects[i]);
    for (const auto &[name, items] : values.metrics) {
      if (penstock::runtime::findMetric(name)->classes)
        sums.counts[name] = toInteger(items[i]);
      else
        sums.errors[name] = double(toFloat(items[i])) * double(sums.labels);
    }
    return sums;
  };
  const DataSet::Tail &tail = evalData.getTail();
  Sums total;
  for (int64_t i = 0, e = tail.samples ? tail.index : microbatches; i < e; ++i)
    total.add(getSums(i));

  // 2. The samples that fill no microbatch, each once.
  if (tail.samples) {
    Sums once = tail.extra ? getSums(tail.index + 1) : Sums();
    Sums rest = getSums(tail.index);
    if (!once.divide(evalData.microbatchSize()) ||
        !rest.subtract(once, tail.extra).divide(tail.copies))
      return userError("--eval-data: what this model computes for a sample "
                       "depends on the others in its microbatch; give a "
                       "multiple of %lld samples",
                       (long long)evalData.microbatchSize());
    total.add(rest);
  }
  evaluatedLabels = total.labels;
  evaluatedCorrect = total.correct;
  results.loss = total.loss / double(total.labels);
  results.accuracy =
      hasCorrect ? double(total.correct) / double(total.labels) : -1;
  // A program without inputs has no samples, but a microbatch all the same.
  results.samples = std::max(evalData.sampleCount(), int64_t(0));
  if (results.samples == 0)
    results.samples = evalData.usableCount();
  results.samples_left_out = 0;

  // 3. What is made of them.
  metrics = {{penstock::runtime::findMetric("loss"), results.loss}};
  if (hasCorrect)
    metrics.push_back(
        {penstock::runtime::findMetric("accuracy"), results.accuracy});
  for (const std::string &name : options.allMetrics()) {
    const MetricKind *kind = penstock::runtime::findMetric(name);
    if (name == "perplexity")
      metrics.push_back({kind, std::exp(results.loss)});
    if (auto found = total.counts.find(name); found != total.counts.end())
      metrics.push_back({kind, double(found->second) / double(total.labels)});
    if (auto found = total.errors.find(name); found != total.errors.end())
      metrics.push_back({kind, found->second / double(total.labels)});
  }
  if (Error error = openLog())
    return error;
  // The log that a resumed run goes on with has it already.
  if (evaluations.step == updatesDone)
    return {};
  std::vector<std::pair<std::string, double>> named;
  for (const Metric &metric : metrics)
    named.emplace_back(metric.kind->name, metric.value);
  if (!logError)
    logError = log.writeEvaluation(updatesDone, named);
  if (!logError)
    logError = monitor.addEvaluation(updatesDone, named);
  return {};
}

const Metric *penstock_run::findMetric(const std::string &name) const {
  for (const Metric &metric : metrics)
    if (name == metric.kind->name)
      return &metric;
  return nullptr;
}

Error penstock_run::openLog() {
  if (options.log.empty() || log.isOpen())
    return {};
  return log.open(options.log, resumedFrom.empty() ? std::nullopt
                                                   : std::optional(resumedAt));
}

Error penstock_run::save(const std::string &path) {
  bool isRaw = path == options.saveRaw ||
               (path == options.saveBest && options.evaluatesRaw);
  return withAverages(isRaw, [&] { return saveWeights(path); });
}

Error penstock_run::saveWeights(const std::string &path) {
  // 1. What all have to say.
  if (!options.warnsOfNotFinite)
    if (const penstock_variable *variable = findNotFinite()) {
      Error error = notFinite("'%s' is not written, because '%s' is not "
                              "finite; --on-nan=warn writes it",
                              path.c_str(), variable->name);
      return peers.agree(peers.isRoot() ? std::move(error) : Error());
    }

  // 2. Rank 0 writes.
  if (!peers.isRoot()) {
    peers.serve(*instance, updatesDone);
    return peers.agree({});
  }
  Error error;
  if (path != options.save)
    error = writer->check(path, path == options.saveBest  ? "--save-best"
                                : path == options.saveRaw ? "--save-raw"
                                                          : nullptr);
  auto read = [&](const penstock_variable &variable, const TakePiece &take) {
    return peers.readVariable(*instance, variable, updatesDone, /*copy=*/0,
                              /*inOrderOfFile=*/true, take);
  };
  if (!error)
    error = writer->write(path, read);
  if (!error && options.verify)
    error = writer->verify(path, read);
  peers.endServing();
  return peers.agree(std::move(error));
}

/// In one process, or in rank 0 of several, which knows of all of them.
std::function<void()> penstock_run::watch() {
  if (peers.isAlone()) {
    double seconds = options.watchdog.value_or(0);
    auto watchdog = std::make_shared<Watchdog>(instance->positions(),
                                               seconds < 0 ? 0 : seconds);
    return [watchdog] { watchdog->check(); };
  }
  if (!peers.isRoot())
    return [] {};
  auto watchdog = std::make_shared<JobWatchdog>(
      program, peers.getJob(), options.watchdog.value_or(JobWatchdog::kAuto),
      nanoseconds());
  auto last = std::make_shared<int64_t>(0);
  return [this, watchdog, last] {
    // Beats do not come more often.
    constexpr int64_t kPeriod = 100000000;
    int64_t now = nanoseconds();
    if (now - *last < kPeriod)
      return;
    *last = now;
    bool isFresh = false;
    std::vector<ProcessState> states = peers.getStates(isFresh);
    std::string why = watchdog->check(states, isFresh, loggedUpdates > 0, now);
    if (!why.empty())
      fail(instance->positions(), PENSTOCK_WATCHDOG, "%s", why.c_str());
  };
}

/// Rank 0 learns how long the devices of others have waited.
void penstock_run::gatherWaits() {
  if (peers.isAlone())
    return;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  ByteWriter own;
  for (double seconds : waitSeconds)
    own.add(seconds);
  own.add(uint64_t(usage.ru_maxrss) << 10);
  std::vector<std::string> all = peers.gather(std::move(own.bytes));
  for (int rank = 0; peers.isRoot() && rank < peers.getJob().size; ++rank) {
    ByteReader reader(all[rank]);
    for (uint32_t device = 0; device < program.device_count; ++device) {
      auto seconds = reader.take<double>();
      if (peers.getJob().rankOfDevice[device] == rank)
        waitSeconds[device] = seconds;
    }
    peakBytes.push_back(reader.take<uint64_t>());
  }
}

Error penstock_run::writeTraceOnce() {
  if (options.trace.empty() || isTraceWritten || startTime == 0)
    return {};
  isTraceWritten = true;
  peers.measureClockAgain();
  TraceWriter file(program, peers.getJob(), getTraceSteps());
  // 1. Others send what they have, one after the other.
  if (!peers.isRoot()) {
    peers.waitForTurn();
    StreamWriter stream = peers.startWriting();
    for (const penstock_device *device : instance->devices()) {
      TraceHead head = {device->index, 0, device->trace->size(),
                        device->trace->lost(), peers.getClockError()};
      stream.write(&head, sizeof(head));
      for (uint64_t i = 0; i < head.count; ++i) {
        TraceBuffer::Slice slice = (*device->trace)[i];
        slice.begin = peers.toRootTime(slice.begin);
        slice.end = peers.toRootTime(slice.end);
        stream.write(&slice, sizeof(slice));
      }
    }
    stream.finish();
    return {};
  }

  // 2. Rank 0 writes the devices in their order, which is that of the ranks.
  Error error = file.open(options.trace, startTime);
  uint64_t lost = 0;
  std::vector<int64_t> clockErrors(peers.getJob().size);
  for (const penstock_device *device : instance->devices()) {
    lost += device->trace->lost();
    if (!error)
      error = file.add(device->index, device->trace->all());
  }
  for (int rank = 1; rank < peers.getJob().size; ++rank) {
    peers.giveTurn(rank);
    StreamReader stream = peers.startReading(rank);
    for (uint32_t device = 0; device < program.device_count; ++device) {
      TraceHead head;
      if (peers.getJob().rankOfDevice[device] != rank)
        continue;
      if (!stream.read(&head, sizeof(head)))
        return {};
      std::vector<TraceBuffer::Slice> slices(head.count);
      if (!stream.read(slices.data(), head.count * sizeof(slices[0])))
        return {};
      lost += head.lost;
      clockErrors[rank] = head.clockError;
      if (!error)
        error = file.add(head.device, slices);
    }
  }
  if (lost)
    std::fprintf(stderr, "%s--trace: the last %llu slices are left out\n",
                 penstock::getSeverityText(penstock::Severity::Warning),
                 (unsigned long long)lost);
  return error ? error : file.close(clockErrors);
}

TraceSteps penstock_run::getTraceSteps() const {
  TraceSteps steps;
  if (const penstock_schedule *train =
          findSchedule(program, PENSTOCK_SCHEDULE_TRAIN))
    steps.microbatches =
        train->microbatches / std::max(program.worker_count, 1u);
  steps.wave = std::max(program.wave, 1u);
  if (options.traceSteps) {
    steps.first = options.traceSteps->first - 1;
    steps.end = options.traceSteps->second;
  }
  return steps;
}

Error penstock_run::finish() {
  if (!peers.isAlone() && startTime != 0)
    gatherWaits();
  Error error = checkpointLast();
  if (!error)
    error = writeTraceOnce();
  noteFailedCheckpoint();
  if (!error)
    error = std::exchange(logError, Error());
  if (!error)
    error = std::exchange(checkpointError, Error());
  return peers.agree(std::move(error));
}
