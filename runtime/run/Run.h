//===- Run.h - What penstock_run is -----------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with its options, data and devices, and what happened so far. The
// functions of the embedding API are thin wrappers of its methods.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_RUN_RUN_H
#define PENSTOCK_RUNTIME_RUN_RUN_H

#include "runtime/io/ModelWriter.h"
#include "runtime/observe/FlightRecord.h"
#include "runtime/observe/Log.h"
#include "runtime/observe/Watchdog.h"
#include "runtime/run/CheckpointPeers.h"
#include "runtime/run/Checkpoints.h"
#include "runtime/run/Metrics.h"
#include "runtime/run/Monitor.h"
#include "runtime/run/Options.h"
#include "runtime/run/Progress.h"
#include "runtime/run/Resume.h"
#include "runtime/run/SinkValues.h"

#include <functional>

struct penstock_run {
  using Error = penstock::runtime::Error;

  penstock_run(const penstock_program &program,
               std::unique_ptr<penstock::runtime::Progress> progress)
      : program(program), checkpoints(program), progress(std::move(progress)),
        averages(penstock::runtime::listAverages(program)), monitor(program),
        peers(program), checkpointPeers(peers) {}

  /// `mistake` is one of the command line: other processes learn of it.
  Error open(Error mistake = {});
  /// Trains so many updates, or fewer where something ends training early. A
  /// loss that is not finite does, with PENSTOCK_NOT_FINITE: the updates until
  /// then are done.
  Error train(int64_t updates);
  /// Evaluates the averages of the weights, where the program keeps any, unless
  /// options.evaluatesRaw.
  Error evaluate(penstock_results &results);
  bool evaluatesAverages() const {
    return !averages.empty() && !options.evaluatesRaw;
  }
  /// Writes all outputs of a program that does not train.
  Error infer();
  /// Values that are not finite replace no file (PENSTOCK_NOT_FINITE), unless
  /// options.warnsOfNotFinite. Writes the averages of the weights where the
  /// program keeps any; to --save-raw, and under options.evaluatesRaw to
  /// --save-best, the weights.
  Error save(const std::string &path);
  /// The end of all processes, which may not return where it is an error.
  void leave(const Error &error);
  /// The folder of a flight record that stays, or empty: devices did something
  /// that should not be.
  std::string findRecord(const Error &error) const;
  /// All processes know of the error that ends the run.
  bool hasAgreed() const { return peers.isAlone() || peers.hasAgreedOnEnd(); }
  /// Returns true if this process prints and writes.
  bool isRoot() const { return peers.isRoot(); }
  Error replay(int64_t updates);
  /// Goes on from a checkpoint, or from the newest in a folder. Before it
  /// trains.
  Error resume(const std::string &path);
  /// Writes a checkpoint of now into a folder, --checkpoint-dir if that is
  /// empty, and returns when it is on the disk.
  Error checkpoint(const std::string &folder);
  /// Begins the one that ends a training, if there is a folder and it is not
  /// there yet; finish() waits for it.
  Error checkpointLast();
  /// Returns true if a checkpoint could not be written, and the run was to end
  /// then.
  bool hasEndedForCheckpoint() const {
    return checkpointError && options.stopsOfCheckpoints;
  }
  /// Writes the trace, once, and says whether the log and the last checkpoint
  /// could be written: what has been trained until then is not given up for
  /// them.
  Error finish();

  /// --steps, or what --epochs come to.
  int64_t requestedUpdates() const;
  /// One line: what a training trains on, and what it leaves out.
  std::string describeTraining() const;

  const penstock::runtime::Instance &getInstance() const { return *instance; }
  const penstock::runtime::Peers &getPeers() const { return peers; }

  /// Losses recorded for --verify.
  uint64_t lossCount() const { return losses.size(); }

  /// Returns the metric of the last evaluation, or null.
  const penstock::runtime::Metric *findMetric(const std::string &name) const;
  /// Updates of a pass over the data.
  int64_t passUpdates() const;
  /// Updates between two evaluations in the midst of training; 0: there are
  /// none.
  int64_t evaluationUpdates() const;
  /// Shows the last state of the training to whoever follows it.
  void finishProgress() { progress->finish(); }

  /// Stores the error and returns its code.
  int report(const Error &error) {
    lastError = error.text;
    for (const std::string &line : error.details)
      lastError += "\n  " + line;
    return error.code;
  }

  const penstock_program &program;
  penstock::runtime::Options options;
  /// Returns the signal that asked this process to end training early, or 0.
  std::function<int()> getStopSignal = [] { return 0; };
  /// The signal by which all processes end early, or 0.
  int getEndingSignal() const {
    return peers.isAlone() ? getStopSignal() : ending.signal;
  }
  /// All processes know of the error with which this one ends.
  void setAgreed() { peers.setAgreed(); }
  /// Says whether a checkpoint was asked for, once.
  std::function<bool()> takeCheckpointRequest = [] { return false; };
  std::string lastError;
  /// The output of `infer`, a line for each file.
  std::string results;
  int64_t updatesDone = 0;
  /// The checkpoint that the run goes on from, and its update.
  std::string resumedFrom;
  int64_t resumedAt = 0;
  /// Counts of the last evaluation: labels that count, and right ones among
  /// them.
  int64_t evaluatedLabels = 0, evaluatedCorrect = 0;
  std::vector<penstock::runtime::Metric> metrics;
  /// The results of evaluations so far. Checkpoints keep them.
  penstock::runtime::ManifestEvaluation evaluations;
  /// Losses of training: the mean of an update's microbatches.
  double lastLoss = 0, bestLoss = 0;
  int64_t bestStep = 0;
  double trainSeconds = 0;
  std::vector<double> waitSeconds; // in training, by device
  /// The cores of each device, where there are several processes.
  std::vector<std::string> cores;
  /// Bytes that messages to other processes need besides, by rank.
  std::vector<uint64_t> transportBytes;
  /// Bytes in which checkpoints wait until they are written, in all processes.
  uint64_t stagedBytes = 0;
  /// The most memory that each process had, by rank.
  std::vector<uint64_t> peakBytes;
  /// Bytes that were allocated, in all processes.
  std::vector<penstock::runtime::ArenaBytes> arenas;
  penstock::runtime::Checkpoints checkpoints;

private:
  Error checkGpus() const;
  Error checkTune() const;
  Error checkOptions() const;
  Error openInputs();
  Error openInstances();
  /// Devices reach those of other processes.
  Error connect();
  Error finishData();
  penstock::runtime::Record describe(const Error &error) const;
  bool reads(const char *endpoint) const;
  std::function<void()> watch();
  Error gatherArenas();
  Error openFlightRecord();
  void gatherWaits();
  void publish(bool isNow);
  /// The files that the run reads; empty: what is embedded.
  std::vector<std::string> inputPaths() const;
  Error writeTraceOnce();
  penstock::runtime::TraceSteps getTraceSteps() const;
  Error openData();
  Error openLog();
  Error checkOutputs();
  void logUpdates(penstock::runtime::SinkValues &values,
                  const penstock_schedule &schedule);
  void setHyperparameters(penstock::runtime::Instance &instance);
  /// Does it while the averages stand in for the weights, unless `isRaw`.
  Error withAverages(bool isRaw, const std::function<Error()> &doIt);
  Error evaluateWeights(penstock_results &results);
  Error saveWeights(const std::string &path);
  Error evaluateHere(penstock_results &results,
                     const penstock::runtime::SinkValues &values,
                     int64_t microbatches);
  void shareEvaluation(penstock_results &results);
  void restoreEvaluations(const penstock::runtime::Manifest &before);
  Error replayHere();
  Error openOutputs(penstock::runtime::OutputArrays &outputs);
  void collectOutputs(penstock::runtime::OutputArrays &outputs,
                      int64_t microbatches);
  penstock::runtime::Peers::Ending getOwnEnding();
  Error checkFolder();
  Error agreeOnFolder();
  Error trainSegment(int64_t updates);
  int64_t countToDrain() const;
  Error startFromCheckpoint();
  Error joinCheckpoints();
  void hearCheckpointRequests();
  bool agreeOnCheckpoint(bool mayBegin);
  Error decideLastCheckpoint(bool &begins);
  Error checkpointElsewhere(const std::string &folder);
  Error findResumed(const std::string &path,
                    penstock::runtime::Checkpoint &checkpoint);
  Error shareResumed(const std::string &path,
                     penstock::runtime::Checkpoint &checkpoint);
  Error goOnFrom(const penstock::runtime::Checkpoint &checkpoint,
                 penstock::runtime::ResumePlan &plan);
  Error readResumed(const penstock::runtime::Checkpoint &from,
                    penstock::runtime::Instance &target,
                    penstock::runtime::ResumePlan &plan);
  penstock::runtime::Manifest describeCheckpoint();
  void noteChanges(const penstock::runtime::Manifest &before);
  void beginCheckpoint();
  Error finishCheckpoint();
  void noteFailedCheckpoint();
  void noteNotFinite(double loss, int64_t update, uint64_t microbatch);
  std::string findNotFiniteStage();
  Error describeNotFinite();
  const penstock_variable *findNotFinite();
  const penstock_variable *findNotFiniteHere() const;
  Error compareLosses(const std::vector<float> &again) const;
  Error compareVariables(const penstock::runtime::Instance &again) const;

  struct Segment {
    int64_t first, updates;
  };

  std::vector<penstock::runtime::MappedFile> files;
  /// Stays until no device writes to it.
  penstock::runtime::FlightRecord flightRecord;
  std::unique_ptr<penstock::runtime::ModelWriter> writer;
  penstock::runtime::DataSet trainData, evalData;
  bool hasTrainData = false, hasEvalData = false;
  penstock::runtime::Log log;
  Error logError;
  std::unique_ptr<penstock::runtime::Instance> instance, oneDevice;

  std::vector<int64_t> earlierSegments; // where they began, of a resumed run
  /// Facts of the data, once they were looked at.
  std::vector<penstock::runtime::ManifestData> dataFacts;
  bool isFolderChecked = false;
  int64_t lastRequest = 0; // for a checkpoint, in nanoseconds
  /// The checkpoint counts updates of other sizes.
  bool isRecounted = false;
  Error checkpointError; // of the last one

  std::vector<Segment> segments;
  std::vector<float> losses; // of every microbatch, for --verify
  int64_t loggedUpdates = 0;
  /// The first loss that was not finite, and why that may be; none: it is
  /// empty.
  std::string notFiniteText, notFiniteReason;
  int64_t notFiniteMicrobatch = 0;
  penstock::runtime::Peers::Ending ending; // of all processes
  bool hasLog = false, isTraceWritten = false, hasReplayed = false;
  int64_t startTime = 0; // of training
  std::unique_ptr<penstock::runtime::Progress> progress;
  /// Beside the weights; none without --ema.
  std::vector<penstock::runtime::Average> averages;
  penstock::runtime::Monitor monitor;
  /// Comes last, so that nothing that it knows of is gone.
  mutable penstock::runtime::Peers peers;
  penstock::runtime::CheckpointPeers checkpointPeers;
};

#endif // PENSTOCK_RUNTIME_RUN_RUN_H
