//===- penstock-checkpoint.cpp - What a folder of checkpoints holds -------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists checkpoints, checks them, compares two, and writes the model of one: of
// what a run left behind, without the run. Needs no compiler.
//===----------------------------------------------------------------------===//

#include "penstock/flag_texts.h"
#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/Json.h"
#include "tools/penstock-checkpoint/Compare.h"
#include "tools/penstock-checkpoint/WriteModel.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <span>
#include <sys/stat.h>

using namespace penstock::runtime;

namespace {

struct Arguments {
  std::vector<std::string> folders;
  std::string model, output;
  bool verify = false, diff = false, json = false, raw = false;
  bool help = false, man = false, version = false;
  std::string shell;
};

/// A flag, and what it sets: one of the two.
struct Flag {
  const char *name, *help;
  bool Arguments::*isSet = nullptr;
  std::string Arguments::*value = nullptr;
  const char *valueName = "";
};

/// A row of the list.
struct Row {
  Checkpoint checkpoint;
  std::string problem;
};

} // namespace

static constexpr Flag kFlags[] = {
    {"diff", "Compare two checkpoints bitwise: 0 if they are equal, else 1",
     &Arguments::diff},
    {"json", "Print JSON", &Arguments::json},
    {"onnx", "Write this model with the weights of the checkpoint", nullptr,
     &Arguments::model, "file"},
    {"o", "Write the model to this file", nullptr, &Arguments::output, "file"},
    {"raw", "Of averaged weights (--ema), write those that are averaged",
     &Arguments::raw},
    {"verify", "Check all checksums", &Arguments::verify}};

/// The flags that every tool has, and other names.
static constexpr Flag kMoreFlags[] = {
    {"completion", "", nullptr, &Arguments::shell, "shell"},
    {"help", "", &Arguments::help},
    {"man", "", &Arguments::man},
    {"output", "", nullptr, &Arguments::output, "file"},
    {"version", "", &Arguments::version}};

static const Flag *findFlag(const std::string &argument) {
  for (const auto &flags :
       {std::span<const Flag>(kFlags), std::span<const Flag>(kMoreFlags)})
    for (const Flag &flag : flags)
      if (argument == (flag.name[1] ? "--" : "-") + std::string(flag.name))
        return &flag;
  return nullptr;
}

static penstock::FlagPage describeTool() {
  penstock::FlagPage page = {
      "penstock-checkpoint",
      PENSTOCK_VERSION,
      "lists and checks the checkpoints of a folder, compares two, and writes "
      "the model of one: of a folder, of the newest",
      "FOLDER [--verify] [--json] [--onnx=MODEL.onnx -o OUT.onnx [--raw]], or "
      "--diff FIRST SECOND [--json]",
      "0: done. 1: a mistake in the command, something is broken, or two "
      "differ.\n2: an internal error.",
      {{"Options", {}}}};
  for (const Flag &flag : kFlags)
    page.groups.front().flags.push_back(
        {flag.name, flag.help, flag.valueName, flag.value != nullptr});
  page.groups.push_back(penstock::getHelpFlags());
  return page;
}

static Error parseArguments(int argc, char **argv, Arguments &arguments) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    size_t equals = argument.find('=');
    bool hasValue = argument.starts_with("--") && equals != std::string::npos;
    if (hasValue) {
      value = argument.substr(equals + 1);
      argument.resize(equals);
    }
    const Flag *flag = findFlag(argument);
    if (!flag && argument.size() > 1 && argument[0] == '-')
      return userError("unknown flag %s (see --help)", argv[i]);
    if (!flag) {
      arguments.folders.emplace_back(argv[i]);
    } else if (flag->isSet) {
      if (hasValue)
        return userError("%s takes no value", argument.c_str());
      arguments.*flag->isSet = true;
    } else {
      if (!hasValue && i + 1 < argc)
        value = argv[++i];
      if (value.empty())
        return userError("%s needs a %s", argument.c_str(),
                         flag->valueName == std::string_view("file")
                             ? "file name"
                             : "shell: bash, zsh or fish");
      arguments.*flag->value = value;
    }
  }
  return {};
}

/// Prints a text about the tool, if one is asked for.
static Error describe(const Arguments &arguments, bool &isDone) {
  std::string text;
  if (arguments.help)
    text = penstock::describeFlags(describeTool());
  else if (arguments.man)
    text = penstock::makeManPage(describeTool());
  else if (arguments.version)
    text = "penstock " PENSTOCK_VERSION "\n";
  else if (!arguments.shell.empty())
    text = penstock::makeCompletion(describeTool(), arguments.shell);
  isDone = !text.empty();
  if (!isDone && !arguments.shell.empty())
    return userError("--completion=%s: the shells are bash, zsh, fish",
                     arguments.shell.c_str());
  std::fputs(text.c_str(), stdout);
  return {};
}

static Error checkArguments(const Arguments &arguments) {
  if (arguments.diff != (arguments.folders.size() == 2) ||
      arguments.folders.empty())
    return userError(arguments.diff ? "--diff compares two checkpoints"
                                    : "one folder is needed (see --help)");
  if (arguments.model.empty() != arguments.output.empty())
    return userError("--onnx MODEL.onnx and -o OUT.onnx go together");
  if (arguments.raw && arguments.model.empty())
    return userError("--raw goes with --onnx MODEL.onnx");
  if (!arguments.model.empty() && (arguments.diff || arguments.json))
    return userError("--onnx goes with no other flag but --verify and --raw");
  return {};
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

static int64_t computeAge(const Manifest &manifest) {
  tm utc = {};
  if (!strptime(manifest.finishedAt.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc))
    return 0;
  return std::max<int64_t>(0, int64_t(time(nullptr)) - int64_t(timegm(&utc)));
}

static std::string ageText(int64_t seconds) {
  if (seconds < 120)
    return format("%lld s", (long long)seconds);
  if (seconds < 7200)
    return format("%lld min", (long long)(seconds / 60));
  if (seconds < 172800)
    return format("%lld h", (long long)(seconds / 3600));
  return format("%lld days", (long long)(seconds / 86400));
}

static std::string sizeText(uint64_t bytes) {
  if (bytes < 1 << 20)
    return format("%.1f KiB", double(bytes) / (1 << 10));
  return format("%.1f MiB", double(bytes) / (1 << 20));
}

static void print(const std::vector<Row> &rows, bool isVerified) {
  std::printf("%10s  %9s  %-24s %6s  %10s  %s\n", "update", "age", "method",
              "stages", "size", "state");
  for (const Row &row : rows) {
    const Manifest &manifest = row.checkpoint.manifest;
    std::string name = row.checkpoint.path;
    name = name.substr(name.rfind('/') + 1);
    std::string step =
        format("%lld", (long long)stepOfName(name).value_or(manifest.step));
    bool isRead = !manifest.method.empty();
    std::printf("%10s  %9s  %-24s %6s  %10s  %s\n", step.c_str(),
                isRead ? ageText(computeAge(manifest)).c_str() : "-",
                isRead ? penstock::toOneLine(manifest.method).c_str() : "-",
                isRead ? format("%lld", (long long)manifest.stages).c_str()
                       : "-",
                isRead ? sizeText(countBytes(manifest)).c_str() : "-",
                row.problem.empty()
                    ? (isVerified ? "whole, all checksums are right" : "whole")
                    : penstock::toOneLine(row.problem).c_str());
  }
}

static void printJson(const std::vector<Row> &rows) {
  std::string text;
  for (const Row &row : rows) {
    const Manifest &manifest = row.checkpoint.manifest;
    std::string replicas;
    for (int64_t count : manifest.replicas)
      replicas += (replicas.empty() ? "" : ", ") + std::to_string(count);
    text += text.empty() ? "\n" : ",\n";
    text +=
        "  {\"path\": " + quoteJson(row.checkpoint.path) +
        format(", \"step\": %lld, \"samples\": %lld", (long long)manifest.step,
               (long long)manifest.samples) +
        ", \"finished_at\": " + quoteJson(manifest.finishedAt) +
        format(", \"age_seconds\": %lld", (long long)computeAge(manifest)) +
        ", \"method\": " + quoteJson(manifest.method) +
        ", \"schedule\": " + quoteJson(manifest.schedule) +
        ", \"optimizer\": " + quoteJson(manifest.optimizer) +
        format(", \"stages\": %lld", (long long)manifest.stages) +
        ", \"replicas\": [" + replicas + "]" +
        format(", \"bytes\": %llu", (unsigned long long)countBytes(manifest)) +
        ", \"whole\": " + (row.problem.empty() ? "true" : "false") +
        ", \"problem\": " +
        (row.problem.empty() ? "null" : quoteJson(row.problem)) + "}";
  }
  std::printf("[%s]\n", (text + (text.empty() ? "" : "\n")).c_str());
}

/// Looks at a checkpoint: at all of it, or at what says what there is.
static Row look(const std::string &path, bool verify) {
  Row row;
  row.problem = readCheckpoint(path, row.checkpoint);
  if (row.problem.empty() && verify)
    row.problem = verifyCheckpoint(row.checkpoint);
  if (row.problem.empty() && verify)
    row.problem = checkIndex(row.checkpoint);
  for (size_t i = 0; row.problem.empty() && !verify &&
                     i < row.checkpoint.manifest.files.size();
       ++i) {
    MappedFile mapped;
    row.problem = mapCheckpointFile(row.checkpoint,
                                    row.checkpoint.manifest.files[i], mapped);
  }
  return row;
}

static Error list(const Arguments &arguments) {
  const std::string &folder = arguments.folders.front();
  std::vector<Row> rows;
  for (int64_t step : listCheckpoints(folder))
    rows.push_back(look(folder + "/" + checkpointName(step), arguments.verify));
  if (rows.empty()) {
    std::string path = findCheckpoint(folder);
    if (path.empty())
      return userError("'%s' holds no checkpoints", folder.c_str());
    rows.push_back(look(path, arguments.verify));
  }
  if (arguments.json)
    printJson(rows);
  else
    print(rows, arguments.verify);
  for (const Row &row : rows)
    if (!row.problem.empty())
      return {PENSTOCK_USER_ERROR, ""};
  return {};
}

//===----------------------------------------------------------------------===//
// One or two of them
//===----------------------------------------------------------------------===//

/// The checkpoint that a folder stands for, all of whose sums are right.
static Error openWhole(const std::string &folder, Checkpoint &checkpoint) {
  std::string path = findCheckpoint(folder);
  if (path.empty())
    return userError("'%s' holds no checkpoints", folder.c_str());
  std::string problem = readCheckpoint(path, checkpoint);
  if (problem.empty())
    problem = verifyCheckpoint(checkpoint);
  return problem.empty() ? Error() : userError("%s", problem.c_str());
}

static Error compare(const Arguments &arguments) {
  Checkpoint first, second;
  if (Error error = openWhole(arguments.folders[0], first))
    return error;
  if (Error error = openWhole(arguments.folders[1], second))
    return error;
  std::vector<std::string> differences;
  if (Error error = compareCheckpoints(first, second, differences))
    return error;
  size_t tensors = 0;
  for (const ManifestFile &file : first.manifest.files)
    tensors += file.tensors.size();
  if (arguments.json) {
    std::string text;
    for (const std::string &each : differences)
      text += (text.empty() ? "" : ", ") + quoteJson(each);
    std::printf("{\"equal\": %s, \"tensors\": %zu, \"differences\": [%s]}\n",
                differences.empty() ? "true" : "false", tensors, text.c_str());
  } else if (differences.empty()) {
    std::printf("%s and %s: %zu tensors, bitwise equal\n",
                penstock::toOneLine(first.path).c_str(),
                penstock::toOneLine(second.path).c_str(), tensors);
  }
  for (const std::string &each : differences)
    if (!arguments.json)
      std::printf("%s\n", penstock::toOneLine(each).c_str());
  return {differences.empty() ? PENSTOCK_DONE : PENSTOCK_USER_ERROR, ""};
}

static Error run(const Arguments &arguments) {
  if (Error error = checkArguments(arguments))
    return error;
  if (arguments.diff)
    return compare(arguments);
  if (arguments.model.empty())
    return list(arguments);
  Checkpoint checkpoint;
  if (Error error = openWhole(arguments.folders.front(), checkpoint))
    return error;
  return writeModel(checkpoint, arguments.model, arguments.output,
                    arguments.raw);
}

int main(int argc, char **argv) {
  Arguments arguments;
  Error error = parseArguments(argc, argv, arguments);
  bool isDone = false;
  if (!error)
    error = describe(arguments, isDone);
  if (!error && !isDone)
    error = run(arguments);
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && !error)
    error = userError("cannot write to standard output");
  if (!error.text.empty())
    std::fprintf(stderr, "%s%s\n",
                 penstock::getSeverityText(penstock::Severity::Error),
                 penstock::toOneLine(error.text).c_str());
  for (const std::string &line : error.details)
    std::fprintf(stderr, "  %s\n", penstock::toOneLine(line).c_str());
  return error.code;
}
