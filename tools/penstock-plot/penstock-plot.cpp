//===- penstock-plot.cpp - Pictures of a run ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The losses that programs have logged, and the timeline of a trace, as SVG;
// side by side where both are given.
//===----------------------------------------------------------------------===//

#include "LossChart.h"
#include "LossLog.h"
#include "TraceTimeline.h"
#include "penstock/Support/CommandLine.h"
#include "penstock/Support/ReplaceFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace penstock;

static constexpr int kUserError = 1;

namespace {

/// All flags, registered for the life of the object.
struct Flags {
  cl::OptionCategory category{"penstock-plot options"};
  cl::list<std::string> logs{cl::Positional, cl::desc("[NAME=]LOG..."),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("The picture, as SVG (required)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> trace{
      "trace",
      cl::desc("Draw the timeline of a file that a program wrote with --trace, "
               "beside the losses if there are logs"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> updates{
      "updates",
      cl::desc("Updates of the timeline, counted from 1 (default: the last "
               "two of the trace)"),
      cl::value_desc("A:B"), cl::cat(category)};
  cl::opt<std::string> title{"title", cl::desc("Title of the losses"),
                             cl::value_desc("text"), cl::init("training loss"),
                             cl::cat(category)};
  cl::opt<std::string> x{"x",
                         cl::desc("Draw the losses over update or seconds "
                                  "(default update)"),
                         cl::value_desc("axis"), cl::init("update"),
                         cl::cat(category)};
  cl::opt<bool> logScale{"log-scale", cl::desc("Draw losses logarithmically"),
                         cl::cat(category)};
  cl::opt<std::string> mostLoss{"max-loss", cl::desc("Draw no losses above X"),
                                cl::value_desc("X"), cl::cat(category)};
  cl::opt<int64_t> smooth{
      "smooth",
      cl::desc("Draw the means of the last N updates, and each loss behind "
               "them (default 1)"),
      cl::value_desc("N"), cl::init(1), cl::cat(category)};
};

} // namespace

static int fail(const Twine &message) {
  reportError("penstock-plot", message, errs());
  return kUserError;
}

/// Reads "A:B", both counted from 1.
static std::optional<UpdateRange> parseUpdates(StringRef text) {
  auto [first, last] = text.split(':');
  UpdateRange range;
  if (first.getAsInteger(10, range.first) ||
      last.getAsInteger(10, range.last) || range.first < 1 ||
      range.last < range.first)
    return std::nullopt;
  return range;
}

/// A log by its file; NAME=FILE says what the legend calls it.
static std::optional<LossLog> readLog(StringRef argument, std::string &error) {
  StringRef name = sys::path::filename(argument), path = argument;
  // A file may have the character in its own name.
  if (argument.contains('=') && !sys::fs::exists(argument))
    std::tie(name, path) = argument.split('=');
  std::optional<LossLog> log = readLossLog(path, error);
  if (log)
    log->name = name.str();
  return log;
}

/// Returns what is wrong with the flags, or an empty text.
static std::string checkFlags(const Flags &flags, ChartOptions &chart) {
  if (flags.output.empty())
    return "-o FILE.svg is needed";
  if (flags.logs.empty() && flags.trace.empty())
    return "a file that a program wrote with --log is needed, or --trace";
  if (flags.logs.size() > kMostLogs)
    return (Twine(flags.logs.size()) + " logs: the lines of " +
            Twine(kMostLogs) + " can be told apart; draw fewer")
        .str();
  if (!flags.updates.empty() && flags.trace.empty())
    return "--updates chooses from a timeline; give --trace";
  if (flags.x != "update" && flags.x != "seconds")
    return "--x=" + flags.x + ": the axes are update, seconds";
  constexpr int64_t kMostSmooth = 10000;
  if (flags.smooth < 1 || flags.smooth > kMostSmooth)
    return ("--smooth=" + Twine(flags.smooth) +
            ": a number of updates from 1 to 10000 is needed")
        .str();
  chart.mostLoss = std::numeric_limits<double>::infinity();
  if (!flags.mostLoss.empty() &&
      (StringRef(flags.mostLoss).getAsDouble(chart.mostLoss) ||
       !std::isfinite(chart.mostLoss)))
    return "--max-loss=" + flags.mostLoss + ": a number is needed";
  chart.title = flags.title;
  chart.overSeconds = flags.x == "seconds";
  chart.isLogarithmic = flags.logScale;
  chart.smooth = flags.smooth;
  // Inputs stay.
  std::vector<StringRef> inputs(flags.logs.begin(), flags.logs.end());
  inputs.push_back(flags.trace);
  for (StringRef input : inputs)
    for (StringRef path : {input, input.split('=').second})
      if (!path.empty() && sys::fs::is_regular_file(path) &&
          sys::fs::equivalent(path, flags.output.getValue()))
        return "-o " + flags.output +
               ": this file is read; choose another name";
  return "";
}

static int run(const Flags &flags) {
  // 1. What is asked for.
  if (!checkNotEmpty(
          "penstock-plot",
          {&flags.output, &flags.trace, &flags.updates, &flags.mostLoss},
          errs()))
    return kUserError;
  ChartOptions chart;
  if (std::string wrong = checkFlags(flags, chart); !wrong.empty())
    return fail(wrong);
  std::optional<UpdateRange> updates;
  if (!flags.updates.empty() && !(updates = parseUpdates(flags.updates)))
    return fail("--updates=" + flags.updates +
                ": a range of updates is needed, as 100:101");

  // 2. What there is.
  std::string error;
  std::vector<LossLog> logs;
  for (const std::string &argument : flags.logs) {
    std::optional<LossLog> log = readLog(argument, error);
    if (!log)
      return fail(error);
    logs.push_back(std::move(*log));
  }
  std::optional<schedule::TimelinePicture> timeline;
  if (!flags.trace.empty() &&
      !(timeline = readTraceTimeline(flags.trace, updates, error)))
    return fail(error);

  // 3. The picture.
  std::vector<SvgPanel> panels;
  std::string title = timeline ? timeline->title : "";
  if (!logs.empty()) {
    title = chart.title + (title.empty() ? "" : "; " + title);
    if (timeline) {
      chart.width = 460;
      chart.height = 300;
    }
    panels.push_back(drawLossChart(logs, chart));
  }
  if (timeline) {
    timeline->width = logs.empty() ? 960 : 640;
    if (!logs.empty())
      timeline->height = chart.height;
    panels.push_back(drawTimelinePicture(*timeline));
  }
  if (std::error_code code = replaceFile(flags.output, writeSvg(panels, title)))
    return fail(flags.output + ": " + code.message());
  return 0;
}

int main(int argc, char **argv) {
  // The options of the LLVM libraries are not ours.
  cl::ResetCommandLineParser();
  static Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::SetVersionPrinter([](raw_ostream &stream) {
    stream << "penstock-plot " << PENSTOCK_VERSION << "\n";
  });
  if (!parseFlags({"penstock-plot",
                   "draws the losses and the timeline of a run",
                   "[options] [NAME=]LOG... -o FILE.svg"},
                  argc, argv, errs()))
    return kUserError;
  return run(flags);
}
