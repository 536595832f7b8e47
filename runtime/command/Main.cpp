//===- Main.cpp - The compiled executable ---------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line over the embedding API: train in segments, evaluate between
// them, verify, save, and print the table. Results go to stdout.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/command/Evaluation.h"
#include "runtime/command/Flags.h"
#include "runtime/command/ProgressLine.h"
#include "runtime/command/Summary.h"
#include "runtime/job/Launch.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace penstock::runtime;

// The handler only notes the signal; whoever trains looks from time to time.

static std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);

/// SA_RESETHAND: the next one of this kind finds the default action; one of the
/// other kind is sent again to itself.
static void onStopSignal(int signal) {
  int none = 0;
  if (received.compare_exchange_strong(none, signal))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// From now on, such a signal is a request. One that is ignored stays so.
static void catchStopSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR2}) {
    struct sigaction action = {}, former = {};
    action.sa_handler = onStopSignal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    // What a shell starts in the background ignores SIGINT.
    if (sigaction(signal, nullptr, &former) == 0 &&
        former.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

/// The signal that came, or 0.
static int getStopSignal() { return received.load(); }

static std::atomic<bool> isCheckpointAsked = false;

/// From now on, SIGUSR1 asks for a checkpoint.
static void catchCheckpointSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int) { isCheckpointAsked.store(true); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

/// Returns true if a signal came since the last call.
static bool takeCheckpointSignal() { return isCheckpointAsked.exchange(false); }

/// Returns true if all that was printed has arrived. A text that fills the
/// buffer may have failed before.
static bool finishStdout() {
  return std::fflush(stdout) == 0 && !std::ferror(stdout);
}

/// Reports the end of a run: its table, on standard output and as JSON.
static Error report(const penstock_run &run, const Evaluation &evaluation) {
  if (!run.isRoot())
    return {};
  if (!run.options.quiet)
    std::fputs(summarize(run, evaluation).c_str(), stdout);
  if (!finishStdout())
    return userError("cannot write to standard output");
  return writeSummary(run, evaluation);
}

/// --transport=control: the processes have met, and do nothing else.
static Error idle(const penstock_run &run) {
  const Job &job = run.getPeers().getJob();
  sleep(1);
  if (run.isRoot())
    std::printf("%d processes have met\n", job.size);
  return {};
}

static Error evaluateOnly(penstock_run &run) {
  if (Error error = run.open())
    return error;
  if (run.options.transport == "control")
    return idle(run);
  Evaluation evaluation(run);
  if (Error error = evaluation.evaluate())
    return error;
  for (const std::string &path : {run.options.save, run.options.saveRaw})
    if (!path.empty())
      if (Error error = run.save(path))
        return error;
  if (Error error = run.finish())
    return error;
  return report(run, evaluation);
}

/// The number that stands for --time-limit among the signals that end a run.
constexpr int kTimeLimit = SIGALRM;

/// Notes that a run ended early; the line is printed before the work that a run
/// does at its end. SIGUSR2 and a time limit are planned ends, and no error.
static Error noteEnding(penstock_run &run, int signal, int64_t total) {
  bool isPlanned = signal == SIGUSR2 || signal == kTimeLimit;
  const char *name = signal == SIGINT    ? "SIGINT"
                     : signal == SIGTERM ? "SIGTERM"
                     : signal == SIGUSR2 ? "SIGUSR2"
                                         : "--time-limit";
  run.setAgreed();
  if (run.isRoot())
    std::fprintf(stderr, "%s by %s after update %lld of %lld\n",
                 isPlanned ? "ended" : "interrupted", name,
                 (long long)run.updatesDone, (long long)total);
  return isPlanned ? Error() : Error{128 + signal, ""};
}

/// Returns what asks this process to end, from now on.
static std::function<int()> makeStopSignal(const Options &options) {
  catchStopSignals();
  int64_t end = options.timeLimit
                    ? nanoseconds() + int64_t(*options.timeLimit * 1e9)
                    : INT64_MAX;
  return [end] {
    if (int signal = getStopSignal())
      return signal;
    return end != INT64_MAX && nanoseconds() >= end ? kTimeLimit : 0;
  };
}

/// One after the other, in one line.
static void append(Error &error, const Error &next) {
  error.text += (error ? "; " : "") + next.text;
  error.code = next.code;
}

/// Updates until the next evaluation in the midst of training.
static int64_t countToEvaluation(const penstock_run &run) {
  int64_t every = run.evaluationUpdates();
  return every ? every - run.updatesDone % every : INT64_MAX;
}

/// Where a resumed run begins, and whether anything is left to do.
static void printResumed(const penstock_run &run, int64_t total) {
  if (run.resumedFrom.empty() || !run.isRoot() || run.options.quiet)
    return;
  std::printf("resumed at update %lld of %lld, from %s%s\n",
              (long long)run.updatesDone, (long long)total,
              penstock::toOneLine(run.resumedFrom).c_str(),
              run.updatesDone < total ? "" : ": nothing is left to train");
  std::fflush(stdout);
}

static Error trainAndPrint(penstock_run &run) {
  const Options &options = run.options;
  Error mistake = options.checkMode(/*infers=*/false);
  if (!mistake && options.evalOnly)
    return evaluateOnly(run);
  if (!mistake && !options.steps && !options.epochs)
    mistake = userError("one of --steps and --epochs is required (see --help)");
  run.getStopSignal = makeStopSignal(options);
  catchCheckpointSignal();
  run.takeCheckpointRequest = takeCheckpointSignal;
  if (Error error = run.open(std::move(mistake)))
    return error;
  if (options.transport == "control")
    return idle(run);

  // 1. Train, and evaluate between segments.
  Evaluation evaluation(run);
  if (Error error = run.train(0)) // says what data is missing
    return error;
  int64_t total = run.requestedUpdates();
  printResumed(run, total);
  if (run.updatesDone < total && !options.quiet && run.isRoot())
    std::fprintf(stderr, "%s\n", run.describeTraining().c_str());
  Error ending;
  bool isOver = false; // before the last update
  while (run.updatesDone < total && !isOver && !evaluation.hasStopped()) {
    int64_t left = total - run.updatesDone;
    ending = run.train(std::min(countToEvaluation(run), left));
    if (ending && ending.code != PENSTOCK_NOT_FINITE &&
        !run.hasEndedForCheckpoint())
      return ending;
    isOver = bool(ending);
    if (int signal = run.getEndingSignal();
        !isOver && signal && run.updatesDone < total) {
      ending = noteEnding(run, signal, total);
      isOver = true;
    }
    int64_t every = run.evaluationUpdates();
    if (every == 0 || run.updatesDone % every || isOver)
      continue;
    if (Error error = evaluation.evaluate())
      return error;
  }
  run.finishProgress();
  if (options.evaluates() && !isOver)
    if (Error error = evaluation.evaluate())
      return error;
  if (evaluation.hasStopped() && run.updatesDone < total && !isOver &&
      run.isRoot() && !options.quiet)
    std::fprintf(stderr,
                 "stopped after update %lld of %lld: %lld evaluations without "
                 "gain; the best one was %s\n",
                 (long long)run.updatesDone, (long long)total,
                 (long long)*options.mostWithoutGain,
                 evaluation.describeBest().c_str());

  // 2. Only what was verified is saved; a checkpoint is what it was verified
  //    from.
  if (Error error = run.checkpointLast())
    return error;
  if (options.verify) {
    if (Error error = run.replay(run.updatesDone - run.resumedAt))
      return error;
    if (run.isRoot() && !options.quiet)
      std::printf("verify: %lld updates, %u variables, %lld losses: bitwise "
                  "equal\n",
                  (long long)(run.updatesDone - run.resumedAt),
                  run.program.variable_count, (long long)run.lossCount());
  }
  for (const std::string &path : {options.save, options.saveRaw}) {
    Error error = path.empty() ? Error() : run.save(path);
    if (!error)
      continue;
    if (error.code != PENSTOCK_NOT_FINITE)
      return error;
    append(ending, error);
    if (!options.saveBest.empty() && evaluation.getBest().bestStep >= 0)
      ending.text += "; '" + options.saveBest + "' has the model of " +
                     evaluation.describeBest();
  }
  if (Error error = run.finish())
    return error;
  if (Error error = report(run, evaluation))
    return error;
  if (ending)
    run.setAgreed();
  return ending;
}

static Error inferAndPrint(penstock_run &run) {
  if (Error error = run.open())
    return error;
  if (run.options.transport == "control")
    return idle(run);
  if (Error error = run.infer())
    return error;
  if (Error error = run.finish())
    return error;
  std::fputs(run.results.c_str(), stdout);
  if (!finishStdout())
    return userError("cannot write to standard output");
  return {};
}

/// A file takes the lowest number that is free: that of a standard stream, if
/// it is closed, and would get what is printed there. Of what holds the number
/// instead, writing fails as it would have.
static void holdStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", O_RDONLY);
}

/// Ends what only prints.
static int finishOutput() {
  if (finishStdout())
    return PENSTOCK_DONE;
  std::fprintf(stderr, "%scannot write to standard output\n",
               penstock::getSeverityText(penstock::Severity::Error));
  return PENSTOCK_USER_ERROR;
}

/// The processors of all devices, each once.
static std::string listProcessors(const penstock_program &program) {
  std::string text;
  for (uint32_t i = 0; i < program.device_count; ++i) {
    std::string name = program.devices[i].processor;
    if ((", " + text + ",").find(", " + name + ",") == std::string::npos)
      text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

/// Returns true in the process that reports what several processes could.
static bool isFirst() {
  LaunchFacts facts;
  return readEnvironment(facts, ::getenv) || facts.rank == 0;
}

extern "C" int penstock_main(int argc, char **argv,
                             const penstock_program *program) {
  holdStandardStreams();
  penstock_run run(*program, std::make_unique<ProgressLine>());
  Error error = parseCommandLine(run.options, argc, argv);
  bool onlyPrints = run.options.help || run.options.version || run.options.plan;
  if (!error && onlyPrints && !isFirst())
    return PENSTOCK_DONE;
  if (!error && run.options.help) {
    std::fputs(helpText(*program, argc ? argv[0] : "program").c_str(), stdout);
    return finishOutput();
  }
  if (!error && run.options.version) {
    std::printf("penstock %s, runtime interface %u, compiled for %s\n",
                PENSTOCK_VERSION, program->abi_version,
                listProcessors(*program).c_str());
    return finishOutput();
  }
  if (!error && run.options.plan) {
    std::printf("%s\n", program->plan ? program->plan : "{}");
    return finishOutput();
  }
  if (error) {
    // Other processes may wait for this one.
    error = run.open(std::move(error));
  } else {
    error = infers(*program) ? inferAndPrint(run) : trainAndPrint(run);
  }
  std::fflush(stdout);
  if (error && !error.text.empty() && run.hasAgreed())
    std::fprintf(stderr, "%s%s\n",
                 penstock::getSeverityText(penstock::Severity::Error),
                 penstock::toOneLine(error.text).c_str());
  for (const std::string &line : error.details)
    std::fprintf(stderr, "  %s\n", penstock::toOneLine(line).c_str());
  if (std::string record = run.findRecord(error);
      !record.empty() && run.hasAgreed() && run.isRoot())
    std::fprintf(stderr, "  penstock-doctor %s says more\n",
                 penstock::toOneLine(record).c_str());
  run.leave(error);
  // Taking the process apart may take long, and a launcher kills what is slow.
  if (error && !run.getPeers().isAlone())
    _exit(error.code);
  return error.code;
}
