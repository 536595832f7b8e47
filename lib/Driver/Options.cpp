//===- Options.cpp - The command line of penstockc ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the public contract. Those whose machinery is not in this
// build are accepted with their default and refused with any other value.
//===----------------------------------------------------------------------===//

#include "ClassWeights.h"
#include "OptionChecker.h"
#include "Plugins.h"
#include "Version.h"

#include "penstock/Methods/Method.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace llvm;
using namespace penstock;

std::optional<int64_t> penstock::parseBytes(StringRef text) {
  static constexpr std::pair<StringLiteral, int64_t> kUnits[] = {
      {"KiB", 1LL << 10}, {"MiB", 1LL << 20},
      {"GiB", 1LL << 30}, {"TiB", 1LL << 40},
      {"KB", 1000},       {"MB", 1000000},
      {"GB", 1000000000}, {"TB", 1000000000000LL},
      {"B", 1},
  };
  int64_t unit = 1;
  for (auto &[name, bytes] : kUnits) {
    if (text.consume_back_insensitive(name)) {
      unit = bytes;
      break;
    }
  }
  double number;
  if (text.trim().getAsDouble(number) || !(number > 0) ||
      number * static_cast<double>(unit) > 9e18)
    return std::nullopt;
  return static_cast<int64_t>(number * static_cast<double>(unit));
}

void Flags::copyTo(CompileOptions &options) const {
  for (const Row &row : rows) {
    cl::Option &option = getOption(row);
    if (auto *field = std::get_if<std::string CompileOptions::*>(&row.field))
      options.**field = static_cast<Text &>(option);
    else if (auto *field = std::get_if<int64_t CompileOptions::*>(&row.field))
      options.**field = static_cast<Count &>(option);
    else if (auto *field = std::get_if<bool CompileOptions::*>(&row.field))
      options.**field = static_cast<Switch &>(option);
  }
}

/// The level of one of the traits kUntil..; none on import.
static std::optional<Level> getLastLevel(unsigned trait) {
  switch (trait) {
  case kUntilGraph:
    return Level::Graph;
  case kUntilStages:
    return Level::Stages;
  case kUntilTraining:
    return Level::Training;
  case kUntilSchedule:
    return Level::Schedule;
  case kUntilProgram:
    return Level::Program;
  default:
    return std::nullopt;
  }
}

bool OptionChecker::checkRows() {
  SmallVector<const Flags::Text *> notEmpty;
  for (const Flags::Row &row : flags.rows) {
    cl::Option &option = Flags::getOption(row);
    if (row.traits & kNotEmpty)
      notEmpty.push_back(static_cast<Flags::Text *>(&option));
    if (!option.getNumOccurrences())
      continue;
    if (row.traits & kRecorded)
      options.given.insert(row.name.str());
    if (row.traits & kOfTraining)
      options.ofTraining.push_back("--" + row.name.str());
    if (unsigned last = row.traits & kUntilMask)
      options.lastLevels.emplace_back(row.name.str(), getLastLevel(last));
  }
  if (flags.globalBatch.getNumOccurrences())
    options.given.insert(flags.microbatches.ArgStr.str());
  flags.copyTo(options);
  return checkNotEmpty("penstockc", notEmpty, errors);
}

bool OptionChecker::checkProduct() {
  if (!flags.inputs.empty())
    options.input = flags.inputs.front();
  if (options.input.empty())
    return fail("no model given; usage: penstockc MODEL.onnx -o OUT [options]");
  if (flags.inputs.size() > 1)
    return fail("'" + flags.inputs[1] +
                "': one model is compiled at a time, "
                "and '" +
                options.input + "' is given already");
  if (options.listNodes) {
    options.product = Product::Ir;
    options.level = Level::Graph;
    options.output = "-";
    return true;
  }
  StringRef emit = flags.emit;
  if (emit == "exe") {
    options.product = Product::Executable;
  } else if (emit == "obj") {
    options.product = Product::Object;
  } else if (std::optional<Level> level = parseLevel(emit)) {
    options.product = Product::Ir;
    options.level = *level;
  } else if (emit == "ptx") {
    options.product = Product::KernelCode;
  } else {
    return fail("--emit=" + emit +
                ": unknown level; levels are onnx, graph, stages, training, "
                "schedule, program, llvm, ptx, obj, exe");
  }
  if (options.output.empty()) {
    if (options.product == Product::Executable ||
        options.product == Product::Object)
      return fail("no output given: -o OUT");
    options.output = "-";
  }
  for (const Flags::Switch *flag : {&flags.embedWeights, &flags.linkStatically})
    if (*flag && options.product != Product::Executable)
      return fail("--" + flag->ArgStr +
                  " is for executables; leave --emit=" + emit + " out");
  if (options.product == Product::Executable && options.output == "-")
    return fail("-o -: an executable needs a file name");
  return true;
}

/// POSIX's extended expressions do not know Perl's classes, and take \d for a
/// d: writes \d, \s and \w as what they stand for. What other letters mean
/// behind a backslash is a `problem`.
static std::string expandClasses(StringRef text, std::string &problem) {
  std::string result;
  size_t set = StringRef::npos; // Where the members of a [set] begin.
  for (size_t i = 0; i < text.size(); ++i) {
    bool isInSet = set != StringRef::npos;
    if (text[i] == '[' && !isInSet)
      set = i + (text.substr(i + 1).starts_with("^") ? 2 : 1);
    else if (text[i] == ']' && isInSet && i > set)
      set = StringRef::npos;
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    char letter = text[++i];
    StringRef members = StringSwitch<StringRef>(StringRef(&letter, 1).lower())
                            .Case("d", "0-9")
                            .Case("s", "[:space:]")
                            .Case("w", "[:alnum:]_")
                            .Default("");
    if (!isAlpha(letter))
      (result += '\\') += letter;
    else if (isInSet && isLower(letter) && !members.empty())
      result += members;
    else if (!isInSet && !members.empty())
      result += ((isLower(letter) ? "[" : "[^") + members + "]").str();
    else
      problem = (Twine("\\") + Twine(letter) + " has no meaning there").str();
  }
  return result;
}

bool OptionChecker::checkRegex(StringRef flag, std::string &text,
                               StringRef wants) {
  std::string problem, expanded = expandClasses(text, problem);
  if (!text.empty() && (!problem.empty() || !Regex(expanded).isValid(problem)))
    return fail("--" + flag + "=" + text + ": " + wants +
                " is needed, and this is no regular expression: " + problem);
  text = expanded;
  return true;
}

bool OptionChecker::checkMode() {
  options.infer = flags.mode == "infer";
  if (!options.infer)
    return flags.mode == "train" ||
           fail("--mode=" + flags.mode + ": it is train or infer");
  options.given.insert("mode");
  return true;
}

void OptionChecker::warnOfIgnored() {
  if (!options.infer)
    return;
  for (const std::string &flag : options.ofTraining)
    beginMessage(errors, "penstockc", Severity::Warning)
        << flag << " has no effect with --mode=infer\n";
}

bool OptionChecker::checkMicrobatches() {
  StringRef size = flags.microbatchSize;
  bool isAuto = size == "auto";
  if (!size.empty() && !isAuto) {
    int64_t samples;
    if (size.getAsInteger(10, samples))
      return fail("--microbatch-size=" + size +
                  ": a number of samples or auto is needed");
    if (!positive("microbatch-size", samples))
      return false;
    if (samples > kMostSamples)
      return fail("--microbatch-size=" + size + ": at most " +
                  Twine(kMostSamples) + " samples");
    options.microbatchSize = samples;
  }
  options.microbatches = flags.microbatches;
  if (!positive("microbatches", options.microbatches))
    return false;
  if (options.microbatches > kMostMicrobatches)
    return fail("--microbatches=" + Twine(options.microbatches) + ": at most " +
                Twine(kMostMicrobatches) + " per update");
  if (flags.globalBatch.getNumOccurrences())
    return checkGlobalBatch(isAuto);
  return !isAuto || fail("--microbatch-size=auto needs --global-batch=B, the "
                         "samples of an update");
}

/// The samples of an update are those of a microbatch times their number.
bool OptionChecker::checkGlobalBatch(bool isAuto) {
  std::string flag = "--global-batch=" + std::to_string(flags.globalBatch);
  constexpr int64_t kMostSamples = 1LL << 31;
  if (!positive("global-batch", flags.globalBatch))
    return false;
  if (flags.globalBatch > kMostSamples)
    return fail(Twine(flag) + ": at most 2^31 samples");
  if (options.infer)
    return fail(Twine(flag) + ": --mode=infer has no updates; say "
                              "--microbatch-size=N");
  if (!flags.scheduleFile.empty())
    return fail(Twine(flag) + ": a table says how many microbatches there "
                              "are; say --microbatch-size=N");
  options.globalBatch = flags.globalBatch;
  bool hasCount = flags.microbatches.getNumOccurrences();
  if (!hasCount && !isAuto && !options.microbatchSize)
    return fail(Twine(flag) + " needs one of --microbatch-size=N, "
                              "--microbatch-size=auto and --microbatches=M");
  // As many as there can be, until it is decided: replicas divide the batch.
  int64_t part = hasCount                 ? options.microbatches
                 : options.microbatchSize ? *options.microbatchSize
                                          : 1;
  int64_t other = options.globalBatch / part;
  if (options.globalBatch % part != 0 ||
      (hasCount && options.microbatchSize && *options.microbatchSize != other))
    return fail(Twine(flag) + " is not " +
                (hasCount ? "--microbatches=" : "--microbatch-size=") +
                Twine(part) + " times " +
                (hasCount && options.microbatchSize
                     ? "--microbatch-size=" + Twine(*options.microbatchSize)
                 : hasCount ? Twine("a --microbatch-size")
                            : Twine("a number of --microbatches")));
  if (hasCount) {
    options.microbatchSize = other;
    return true;
  }
  options.choosesMicrobatches = isAuto;
  options.microbatches = other;
  if (!isAuto && other > kMostMicrobatches)
    return fail(Twine(flag) + ": there are at most " +
                Twine(kMostMicrobatches) +
                " microbatches in an update, and "
                "these would be " +
                Twine(other));
  return true;
}

bool OptionChecker::checkModel() {
  for (StringRef dim : flags.dims) {
    auto [name, value] = dim.rsplit('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return fail("--dim " + dim +
                  ": expected NAME=N or INPUT:AXIS=N with N >= 1");
    auto [it, isNew] = options.dims.try_emplace(name.str(), size);
    if (!isNew && it->second != size)
      return fail("--dim " + name + " is given as " + Twine(it->second) +
                  " and as " + Twine(size));
  }
  for (StringRef tie : flags.tie) {
    auto [first, second] = tie.split('=');
    if (first.empty() || second.empty())
      return fail("--tie " + tie + ": expected A=B, two initializers");
    options.ties.emplace_back(first, second);
  }
  return checkLoss() && checkRegex("train", options.trainRegex) &&
         checkRegex("freeze", options.freezeRegex);
}

/// Checks the parameters of --loss=softmax-cross-entropy, which stand behind
/// its colon.
bool OptionChecker::checkClassTargets(StringRef parameters) {
  std::string flag = "--loss=softmax-cross-entropy: ";
  while (!parameters.empty()) {
    auto [parameter, rest] = parameters.split(',');
    parameters = rest;
    auto [key, value] = parameter.split('=');
    if (key == "label-smoothing") {
      if (value.getAsDouble(options.labelSmoothing) ||
          !(options.labelSmoothing >= 0 && options.labelSmoothing < 1))
        return fail(Twine(flag) + parameter +
                    ": a number of at least 0 and below 1 is needed, as in "
                    "label-smoothing=0.1");
    } else if (key == "class-weights") {
      options.classWeightsFile = value.str();
      if (value.empty())
        return fail(Twine(flag) + parameter +
                    ": a file is needed, as in class-weights=w.npy");
      options.classWeights.clear();
      std::string problem = readClassWeights(value, options.classWeights);
      if (!problem.empty())
        return fail(Twine(flag) + parameter + ": " + problem +
                    "; one float of at least 0 per class is needed");
    } else {
      return fail(Twine(flag) + "'" + key +
                  "' is unknown; its parameters are label-smoothing, "
                  "class-weights");
    }
  }
  return true;
}

bool OptionChecker::checkLoss() {
  auto [name, parameters] = StringRef(options.loss).split(':');
  if (name == "softmax-cross-entropy" && name.size() != options.loss.size()) {
    if (parameters.empty())
      return fail("--loss=" + options.loss +
                  ": parameters are needed behind the colon, as in "
                  "softmax-cross-entropy:label-smoothing=0.1");
    if (!checkClassTargets(parameters))
      return false;
    options.loss = name.str();
  }
  if (options.loss != "softmax-cross-entropy" &&
      options.loss != "bce-with-logits" && options.loss != "mse" &&
      options.loss != "output")
    return fail("--loss=" + options.loss +
                ": unknown loss; losses are softmax-cross-entropy, "
                "bce-with-logits, mse, output");
  for (const std::string &metric : flags.metrics) {
    StringRef classes = metric;
    int64_t number;
    bool isTop = classes.consume_front("top-") &&
                 !classes.getAsInteger(10, number) && number > 0 &&
                 classes == std::to_string(number);
    if (!isTop && metric != "mae")
      return fail("--metrics=" + metric +
                  ": evaluations count top-K, as top-5, and mae; loss, "
                  "accuracy and perplexity need no flag");
    if (llvm::is_contained(options.metrics, metric))
      return fail("--metrics=" + metric + ": is named twice");
    options.metrics.push_back(metric);
  }
  int64_t label;
  if (!options.ignoreLabel.empty() &&
      StringRef(options.ignoreLabel).getAsInteger(10, label))
    return fail("--ignore-label=" + options.ignoreLabel +
                ": an integer is needed");
  if (options.loss != "softmax-cross-entropy") {
    if (!options.ignoreLabel.empty())
      return fail("--ignore-label=" + options.ignoreLabel +
                  " needs --loss=softmax-cross-entropy");
    if (flags.classAxis.getNumOccurrences())
      return fail("--class-axis=" + Twine(options.classAxis) +
                  " needs --loss=softmax-cross-entropy");
  }
  return true;
}

/// Parameters that update differently from the others.
bool OptionChecker::checkGroups() {
  for (StringRef text : flags.rateScale) {
    auto [pattern, factor] = text.rsplit(':');
    std::string expanded = pattern.str();
    double scale;
    if (pattern.empty() || factor.getAsDouble(scale) || !std::isfinite(scale) ||
        scale < 0)
      return fail("--lr-scale=" + text +
                  ": an expression and a factor of at least 0 are needed, as "
                  "in --lr-scale='embed:0.1'");
    if (!checkRegex("lr-scale", expanded))
      return false;
    options.rateScales.emplace_back(expanded, scale);
  }
  if (!checkRegex("no-decay", options.noDecayRegex))
    return false;
  if (!options.noDecayRegex.empty() &&
      !options.optimizer.getKind().findKey("weight-decay"))
    return fail("--no-decay=" + options.noDecayRegex + ": " +
                options.optimizer.getName() + " has no weight decay");
  bool hasGroups = !options.noDecayRegex.empty() || !options.rateScales.empty();
  if (hasGroups && options.method.getMethod().predictsWeights())
    return fail((options.rateScales.empty() ? "--no-decay" : "--lr-scale") +
                Twine(": --method=") + options.method.getText() +
                " predicts weights by one learning rate and decay for all; "
                "choose another method, or leave the flag out");
  return true;
}

bool OptionChecker::check() {
  if (!checkRows() || !checkProduct() || !checkMode() || !checkMicrobatches() ||
      !checkModel() || !checkPlan() || !checkDeviceModel() || !checkGroups() ||
      !checkTarget())
    return false;
  warnOfIgnored();
  return true;
}

bool penstock::parseCommandLine(int argc, const char *const *argv,
                                CompileOptions &options, raw_ostream &errors) {
  // The options of the LLVM libraries are not ours, and some share our names.
  cl::ResetCommandLineParser();
  static Flags flags;
  cl::HideUnrelatedOptions(flags.groups);
  cl::SetVersionPrinter(
      [](raw_ostream &stream) { printVersion("penstockc", stream); });
  return parseFlags({"penstockc",
                     "compiles an ONNX model into a pipeline program that "
                     "trains it",
                     "MODEL -o OUT [options]", flags.groups},
                    argc, argv, errors) &&
         loadPlugins(std::vector<std::string>(flags.plugins.begin(),
                                              flags.plugins.end()),
                     errors) &&
         OptionChecker(flags, options, errors).check();
}
