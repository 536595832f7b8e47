//===- penstock-schedule.cpp - What a schedule costs ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without a model and without hardware: devices, microbatches, a schedule and
// how long things take, in; makespan, bubble, memory and timelines, out.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Csv.h"
#include "penstock/Schedule/Simulator.h"
#include "penstock/Schedule/Transfers.h"
#include "penstock/Support/Columns.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Support/ReplaceFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;
using namespace penstock::schedule;

namespace {

constexpr int kUserError = 1, kDefect = 2, kDoesNotFit = 3;

/// All flags, registered for the life of the object.
struct Flags {
  cl::OptionCategory category{"penstock-schedule options"};
  cl::opt<int64_t> devices{"devices", cl::desc("Devices"), cl::init(4),
                           cl::cat(category)};
  cl::opt<int64_t> microbatches{"microbatches",
                                cl::desc("Microbatches per weight update"),
                                cl::init(8), cl::cat(category)};
  // A description is a reference: the text has to outlive the flag.
  std::string scheduleText = "Schedule: " + join(scheduleNames(), ", ");
  cl::opt<std::string> schedule{"schedule", cl::desc(scheduleText),
                                cl::init("1f1b"), cl::cat(category)};
  cl::opt<std::string> times{
      "times",
      cl::desc("Forward, input gradient and weight gradient of a stage: F,B,W"),
      cl::value_desc("F,B,W"), cl::init("1,1,1"), cl::cat(category)};
  cl::opt<std::string> transfer{"comm", cl::desc("A transfer between devices"),
                                cl::value_desc("T"), cl::init("0"),
                                cl::cat(category)};
  cl::opt<std::string> memoryLimit{
      "memory-limit",
      cl::desc("Activations that fit on a device, in microbatches of one "
               "stage: zb-auto keeps to it, the others are refused beyond it"),
      cl::value_desc("X"), cl::cat(category)};
  cl::opt<std::string> weightMemory{
      "weight-memory",
      cl::desc("Share of a microbatch's activations that weight gradients "
               "still need (default 0)"),
      cl::value_desc("X"), cl::init("0"), cl::cat(category)};
  cl::opt<int64_t> updates{
      "updates",
      cl::desc("Updates to simulate (default 1; where they overlap, two more "
               "than forwards run ahead)"),
      cl::value_desc("N"), cl::init(0), cl::cat(category)};
  cl::opt<bool> json{"json",
                     cl::desc("Print makespan, bubble and memory as "
                              "JSON, instead of a timeline"),
                     cl::cat(category)};
  cl::opt<std::string> svg{"svg", cl::desc("Draw the timeline"),
                           cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> trace{"trace", cl::desc("Write it for Perfetto"),
                             cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> csv{"csv",
                           cl::desc("Write the order of every device, in the "
                                    "format of torch.distributed.pipelining"),
                           cl::value_desc("file"), cl::cat(category)};
};

} // namespace

static int fail(const Twine &message, int code = kUserError) {
  penstock::reportError("penstock-schedule", message, errs());
  return code;
}

/// Sums of times stay finite.
constexpr double kMostTime = 1e15;

static bool parseTime(StringRef text, double &value) {
  return !text.trim().getAsDouble(value) && value >= 0 && value <= kMostTime;
}

static std::string plain(double value) {
  std::string text;
  raw_string_ostream(text) << format("%g", value);
  return text;
}

static bool write(StringRef path, StringRef text) {
  std::error_code code = penstock::replaceFile(path, text);
  if (code)
    fail(path + ": " + code.message());
  return !code;
}

static void printJson(const Simulation &simulation,
                      std::optional<double> steadyBubble) {
  json::OStream stream(outs(), 2);
  stream.object([&] {
    stream.attribute("makespan", simulation.makespan);
    stream.attribute("bubble_rate", simulation.bubble);
    stream.attributeArray("peak_activations", [&] {
      for (double peak : simulation.peaks)
        stream.value(peak);
    });
    stream.attribute("makespan_with_barrier", simulation.withBarrier);
    stream.attribute("bubble_rate_with_barrier", simulation.bubbleWithBarrier);
    if (steadyBubble)
      stream.attribute("bubble_rate_steady", *steadyBubble);
  });
  outs() << "\n";
}

static void printTimeline(const Problem &problem, const Simulation &simulation,
                          std::optional<double> steadyBubble) {
  outs() << format("makespan %g, bubble %.1f %%", simulation.makespan,
                   100 * simulation.bubble);
  if (steadyBubble)
    outs() << format("; in the steady state %.1f %%", 100 * *steadyBubble);
  else if (simulation.withBarrier > simulation.makespan * (1 + 1e-12))
    outs() << format("; where all updates wait for all devices %g, %.1f %%",
                     simulation.withBarrier,
                     100 * simulation.bubbleWithBarrier);
  outs() << "\npeak activations:";
  for (double peak : simulation.peaks)
    outs() << format(" %g", peak);
  outs() << "\n";
  for (auto [device, line] : enumerate(drawTimeline(problem, simulation)))
    outs() << penstock::cutBehind(formatv("{0,3}: {1}", device, line).str())
           << "\n";
}

/// With its transfers, under the execution model of compiled programs.
static std::optional<std::string> disprove(const Problem &problem,
                                           std::vector<Order> orders) {
  if (auto why = placeTransfers(problem.model, orders))
    return why;
  // Where updates overlap, forwards read the newest weights that there are.
  Model model = problem.model;
  std::vector<int64_t> lags = computeForwardLags(model, orders);
  for (Task &task : model.tasks)
    for (Read &read : task.reads)
      if (task.letter == 'F' && read.lag)
        read.lag = lags[task.stage];
  Proof proof = verifyOrders(model, orders);
  if (!proof.violation)
    return std::nullopt;
  std::string text = "S" + std::to_string(proof.violation->rule) + ": " +
                     proof.violation->message;
  for (const std::string &note : proof.violation->notes)
    text += "\n" + note;
  return text;
}

static int run(const Flags &flags) {
  // 1. The problem.
  if (!penstock::checkNotEmpty(
          "penstock-schedule",
          {&flags.memoryLimit, &flags.svg, &flags.trace, &flags.csv}, errs()))
    return kUserError;
  const cl::opt<std::string> *files[] = {&flags.svg, &flags.trace, &flags.csv};
  for (unsigned i : {1, 2})
    for (unsigned j = 0; j < i; ++j)
      if (!files[i]->empty() && *files[i] == *files[j])
        return fail("--" + files[i]->ArgStr + "=" + *files[i] + ": --" +
                    files[j]->ArgStr + " writes this file already");
  std::string error;
  std::optional<ScheduleSpec> spec = parseScheduleSpec(flags.schedule, error);
  if (!spec)
    return fail("--schedule: " + error);
  constexpr int64_t kMostDevices = 4096, kMostActions = 1 << 26;
  if (flags.devices < 1 || flags.devices > kMostDevices)
    return fail("--devices=" + Twine(flags.devices) +
                ": a number from 1 to 4096 is needed");
  if (flags.microbatches < 1)
    return fail("--microbatches=" + Twine(flags.microbatches) +
                ": a positive number is needed");
  int64_t mostMicrobatches = kMostActions / (flags.devices * spec->chunks());
  if (flags.microbatches > mostMicrobatches)
    return fail("--microbatches=" + Twine(flags.microbatches) +
                ": a timeline of so many runs is not drawn; use fewer");
  if (flags.updates.getNumOccurrences() && flags.updates < 1)
    return fail("--updates=" + Twine(flags.updates) +
                ": a positive number is needed");
  int64_t updates = flags.updates > 0 ? flags.updates
                    : spec->flushes() ? 1
                                      : flags.devices + 1;
  if (updates > mostMicrobatches / flags.microbatches)
    return fail((flags.updates > 0 ? "--updates=" + Twine(updates)
                                   : "--devices=" + Twine(flags.devices)) +
                ": a timeline of so many runs is not drawn; use fewer");
  if (!spec->flushes() && !flags.csv.empty())
    return fail("--csv=" + flags.csv +
                ": a table ends every update before the next one begins, which "
                "--schedule=" +
                flags.schedule + " does not; leave it out");
  Times times;
  SmallVector<StringRef> parts;
  StringRef(flags.times).split(parts, ',');
  if (parts.size() != 3 || !parseTime(parts[0], times.forward) ||
      !parseTime(parts[1], times.backward) ||
      !parseTime(parts[2], times.weight))
    return fail("--times=" + flags.times +
                ": expected three times up to 1e15, as in --times=1,1,1");
  if (times.forward + times.backward + times.weight <= 0)
    return fail("--times=" + flags.times + ": something must take time");
  if (!parseTime(flags.transfer, times.transfer))
    return fail("--comm=" + flags.transfer + ": expected a time up to 1e15");
  Problem problem(*spec, flags.devices, flags.microbatches, times);
  problem.updates = updates;
  if (!flags.memoryLimit.empty() &&
      (!parseTime(flags.memoryLimit, problem.memoryLimit) ||
       problem.memoryLimit <= 0))
    return fail("--memory-limit=" + flags.memoryLimit +
                ": expected a number of microbatches");
  if (!parseTime(flags.weightMemory, problem.weightMemory) ||
      problem.weightMemory > 1)
    return fail("--weight-memory=" + flags.weightMemory +
                ": expected a share from 0 to 1");
  if (error = checkProblem(problem); !error.empty())
    return fail(error);

  // 2. Its schedule, proved and simulated.
  std::vector<Order> orders = generate(problem);
  if (auto why = disprove(problem, orders))
    return fail("schedule " + flags.schedule + " is wrong: " + *why, kDefect);
  Simulation simulation = simulate(problem, orders);
  std::optional<double> steadyBubble;
  if (!spec->flushes())
    steadyBubble = simulateSteadyBubble(problem, orders);
  for (auto [device, peak] : enumerate(simulation.peaks))
    if (problem.memoryLimit > 0 && peak > problem.memoryLimit + 1e-9)
      return fail("--memory-limit=" + plain(problem.memoryLimit) + ": device " +
                      Twine(device) + " holds " + plain(peak) +
                      " microbatches under " + flags.schedule +
                      "; zb-auto keeps to a limit",
                  kDoesNotFit);

  // 3. What was asked for.
  std::string title =
      formatv("{0}: {1} devices, {2} microbatches, bubble {3:f1} %",
              flags.schedule, flags.devices, flags.microbatches,
              100 * steadyBubble.value_or(simulation.bubble));
  if (!flags.svg.empty() &&
      !write(flags.svg, drawSvg(problem, simulation, title)))
    return kUserError;
  if (!flags.trace.empty() &&
      !write(flags.trace, writeTrace(problem, simulation)))
    return kUserError;
  if (!flags.csv.empty() && !write(flags.csv, writeCsv(problem.model, orders)))
    return kUserError;
  if (flags.json)
    printJson(simulation, steadyBubble);
  else
    printTimeline(problem, simulation, steadyBubble);
  return penstock::flushOutput("penstock-schedule", errs()) ? 0 : kUserError;
}

int main(int argc, char **argv) {
  // The options of the LLVM libraries are not ours.
  cl::ResetCommandLineParser();
  static Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::SetVersionPrinter([](raw_ostream &stream) {
    stream << "penstock-schedule " << PENSTOCK_VERSION << "\n";
  });
  if (!penstock::parseFlags({"penstock-schedule",
                             "says what a pipeline schedule costs, and draws "
                             "it"},
                            argc, argv, errs()))
    return kUserError;
  return run(flags);
}
