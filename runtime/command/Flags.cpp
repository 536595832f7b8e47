//===- Flags.cpp - The flags of a compiled executable ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every mistake is one line that names the flag.
//===----------------------------------------------------------------------===//

#include "runtime/command/Flags.h"
#include "penstock/nearest.h"
#include "penstock/one_line.h"
#include "runtime/io/DataSet.h"
#include "runtime/run/Metrics.h"
#include "runtime/support/Roles.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace penstock::runtime;

namespace {

Error parseInteger(const char *flag, const char *text, int64_t least,
                   std::optional<int64_t> &result) {
  int64_t value = 0;
  const char *end = text + std::strlen(text);
  auto [stop, status] = std::from_chars(text, end, value);
  if (status != std::errc() || stop != end || value < least)
    return userError("--%s: '%s' is not a whole number of at least %lld", flag,
                     text, (long long)least);
  result = value;
  return {};
}

Error parseCount(const char *flag, const char *text,
                 std::optional<int64_t> &result) {
  if (Error error = parseInteger(flag, text, 0, result))
    return error;
  if (*result > kMostUpdates)
    return userError("--%s: '%s' is more than %lld", flag, text,
                     (long long)kMostUpdates);
  return {};
}

Error parseNumber(const char *flag, const char *text,
                  std::optional<double> &result) {
  char *end = nullptr;
  double value = std::strtod(text, &end);
  if (end == text || *end || !std::isfinite(value) || value < 0)
    return userError("--%s: '%s' is not a number of at least 0", flag, text);
  result = value;
  return {};
}

Error parseFile(const char *flag, const char *text, std::string &result) {
  if (!*text)
    return userError("--%s: the file name is empty", flag);
  result = text;
  return {};
}

Error parsePair(const char *flag, const char *text,
                std::vector<std::pair<std::string, std::string>> &result) {
  // Names may contain '=' no more than files do; the first one separates.
  const char *equals = std::strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    return userError("--%s: '%s' is not of the form NAME=FILE.npy", flag, text);
  result.emplace_back(std::string(text, equals), equals + 1);
  return {};
}

/// Beyond that, nanoseconds would not fit; it is a lifetime.
Error setWatchdog(Options &options, const char *flag, const char *text) {
  constexpr double kMostSeconds = 1e9;
  if (!std::strcmp(text, "auto")) {
    options.watchdog.reset();
    return {};
  }
  if (Error error = parseNumber(flag, text, options.watchdog))
    return error;
  if (*options.watchdog > kMostSeconds)
    return userError("--%s: '%s' is more than %.0f seconds; 0 turns it off",
                     flag, text, kMostSeconds);
  return {};
}

Error setOnNan(Options &options, const char *flag, const char *text) {
  options.warnsOfNotFinite = !std::strcmp(text, "warn");
  if (options.warnsOfNotFinite || !std::strcmp(text, "stop"))
    return {};
  return userError("--%s: '%s' is neither stop nor warn", flag, text);
}

/// Seconds, or M:S, or H:M:S.
Error setTimeLimit(Options &options, const char *flag, const char *text) {
  constexpr double kMostSeconds = 1e9;
  double seconds = 0;
  int parts = 0;
  for (const char *at = text; parts < 4; ++parts) {
    unsigned number = 0;
    auto [stop, status] = std::from_chars(at, text + std::strlen(text), number);
    if (status != std::errc() || (*stop && *stop != ':'))
      break;
    seconds = 60 * seconds + number;
    if (!*stop && parts < 3 && seconds > 0 && seconds <= kMostSeconds) {
      options.timeLimit = seconds;
      return {};
    }
    at = stop + (*stop == ':');
  }
  return userError("--%s: '%s' is no time, as 90, 1:30 or 1:30:00", flag, text);
}

/// "200", "1epoch" or "2epochs".
Error setEvalEvery(Options &options, const char *flag, const char *text) {
  std::string number = text;
  options.isEvalEveryEpochs = false;
  for (const char *unit : {"epochs", "epoch"})
    if (size_t length = std::strlen(unit);
        number.size() > length &&
        number.compare(number.size() - length, length, unit) == 0) {
      number.resize(number.size() - length);
      options.isEvalEveryEpochs = true;
      break;
    }
  if (parseInteger(flag, number.c_str(), 1, options.evalEvery))
    return userError("--%s: '%s' is no number of updates, as 200, or of "
                     "passes, as 1epoch",
                     flag, text);
  return {};
}

Error setMetrics(Options &options, const char *flag, const char *text) {
  options.metrics.clear();
  for (std::string rest = text, name; !rest.empty();) {
    size_t comma = std::min(rest.find(','), rest.size());
    name = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    if (!findMetric(name))
      return userError("--%s: unknown metric '%s'; there are %s", flag,
                       name.c_str(), listMetrics().c_str());
    options.metrics.push_back(name);
  }
  if (options.metrics.empty())
    return userError("--%s: no metric is named; there are %s", flag,
                     listMetrics().c_str());
  return {};
}

/// FILE or FILE:METRIC.
Error setSaveBest(Options &options, const char *flag, const char *text) {
  std::string path = text;
  size_t colon = path.rfind(':');
  options.bestMetric = "loss";
  if (colon != std::string::npos && findMetric(path.substr(colon + 1))) {
    options.bestMetric = path.substr(colon + 1);
    path.resize(colon);
  }
  return parseFile(flag, path.c_str(), options.saveBest);
}

Error setProgress(Options &options, const char *flag, const char *text) {
  options.progressSeconds.reset();
  options.hidesProgress = !std::strcmp(text, "off");
  if (options.hidesProgress)
    return {};
  if (parseNumber(flag, text, options.progressSeconds))
    return userError("--%s: '%s' is neither a number of seconds nor off", flag,
                     text);
  return {};
}

/// "A:B", both counted from 1.
Error setTraceSteps(Options &options, const char *flag, const char *text) {
  int64_t first = 0, last = 0;
  const char *end = text + std::strlen(text);
  auto [colon, status] = std::from_chars(text, end, first);
  bool isPair = status == std::errc() && colon != end && *colon == ':';
  if (isPair) {
    auto [stop, second] = std::from_chars(colon + 1, end, last);
    isPair = second == std::errc() && stop == end;
  }
  if (!isPair || first < 1 || last < first)
    return userError("--%s: '%s' is not a range of updates, as 100:110", flag,
                     text);
  options.traceSteps = {first, last};
  return {};
}

Error setLast(Options &options, const char *flag, const char *text) {
  for (Last last : {Last::Drop, Last::Pad, Last::Wrap})
    if (!std::strcmp(text, nameOf(last))) {
      options.last = last;
      return {};
    }
  return userError("--%s: '%s' is not one of drop, pad, wrap", flag, text);
}

using Setter = Error (*)(Options &, const char *flag, const char *value);

struct Flag {
  const char *name;
  const char *value; // in the help text, null when there is none
  const char *help;
  Setter set;
  For kind = For::Training;
};

template <bool Options::*Member>
Error setTrue(Options &options, const char *, const char *) {
  options.*Member = true;
  return {};
}
template <std::string Options::*Member>
Error setFile(Options &options, const char *flag, const char *value) {
  return parseFile(flag, value, options.*Member);
}
template <std::optional<int64_t> Options::*Member, int64_t Least>
Error setInteger(Options &options, const char *flag, const char *value) {
  return parseInteger(flag, value, Least, options.*Member);
}
template <std::optional<int64_t> Options::*Member>
Error setCount(Options &options, const char *flag, const char *value) {
  return parseCount(flag, value, options.*Member);
}
template <std::optional<double> Options::*Member>
Error setNumber(Options &options, const char *flag, const char *value) {
  return parseNumber(flag, value, options.*Member);
}
template <auto Member>
Error setPair(Options &options, const char *flag, const char *value) {
  return parsePair(flag, value, options.*Member);
}

Error setGpus(Options &options, const char *flag, const char *value) {
  constexpr int kMost = 1 << 16;
  options.gpus.clear();
  for (const char *text = value, *end = value + std::strlen(value);; ++text) {
    int gpu = -1;
    auto [stop, status] = std::from_chars(text, end, gpu);
    if (status != std::errc() || gpu < 0 || gpu >= kMost ||
        (stop != end && *stop != ','))
      return userError("--%s: '%s' is not a list of GPUs, as 0,1", flag, value);
    options.gpus.push_back(gpu);
    if (stop == end)
      return {};
    text = stop;
  }
}

Error setPort(Options &options, const char *flag, const char *value) {
  Error error = parseInteger(flag, value, 0, options.metricsPort);
  if (!error && *options.metricsPort > 65535)
    return userError("--%s: '%s' is no port, which is at most 65535", flag,
                     value);
  return error;
}

Error setTransport(Options &options, const char *, const char *value) {
  // `control` only starts, shakes hands and ends.
  for (const char *known : {"auto", "threads", "mpi", "nccl", "control"})
    if (!std::strcmp(value, known)) {
      options.transport = value;
      return {};
    }
  return userError("--transport: '%s' is not one of auto, threads, mpi, nccl",
                   value);
}

Error setCheckpointFailure(Options &options, const char *flag,
                           const char *value) {
  options.stopsOfCheckpoints = !std::strcmp(value, "stop");
  if (options.stopsOfCheckpoints || !std::strcmp(value, "warn"))
    return {};
  return userError("--%s: '%s' is neither warn nor stop", flag, value);
}

constexpr Flag kFlags[] = {
    {"data", "NAME=FILE.npy", "samples of a model input (repeatable)",
     setPair<&Options::data>, For::Both},
    {"labels", "FILE.npy", "labels of the samples", setFile<&Options::labels>},
    {"model", "FILE.onnx",
     "the model that was compiled, where it is now (beside the program, or "
     "where it was)",
     setFile<&Options::model>, For::Both},
    {"steps", "N", "number of weight updates (or --epochs)",
     setCount<&Options::steps>},
    {"epochs", "N", "passes over the data (or --steps)",
     setCount<&Options::epochs>},
    {"time-limit", "H:M:S", "end training after so long, with complete files",
     setTimeLimit},
    {"lr", "X", "learning rate instead of the compiled one",
     setNumber<&Options::rate>},
    {"seed", "S", "seed of --shuffle and of random masks (0)",
     setInteger<&Options::seed, 0>},
    {"shuffle", nullptr, "a new order of the samples in every epoch",
     setTrue<&Options::shuffle>},
    {"last", "drop|pad|wrap",
     "samples that fill no update: left out, with others that do not count, or "
     "with those that the pass began with (drop)",
     setLast},
    {"log", "FILE.jsonl", "one JSON object per update", setFile<&Options::log>},
    {"save", "FILE.onnx", "the model with its trained weights",
     setFile<&Options::save>},
    {"save-raw", "FILE.onnx",
     "of a program that averages its weights (--ema): the weights themselves",
     setFile<&Options::saveRaw>},
    {"trace", "FILE.json", "the run as a Chrome/Perfetto trace",
     setFile<&Options::trace>, For::Both},
    {"flight-record", "DIR",
     "what devices did last, for penstock-doctor (a folder in TMPDIR; off)",
     setFile<&Options::flightRecord>, For::Both},
    {"trace-steps", "A:B", "the updates in it (all)", setTraceSteps},
    {"memory", "FILE.json", "the bytes that each device has allocated",
     setFile<&Options::memory>, For::Both},
    {"outputs", "DIR", "folder of the outputs, NAME.npy for each",
     setFile<&Options::outputs>, For::Inference},
    {"eval-data", "NAME=FILE.npy", "samples to evaluate (repeatable)",
     setPair<&Options::evalData>},
    {"eval-labels", "FILE.npy", "labels to evaluate",
     setFile<&Options::evalLabels>},
    {"eval-every", "N", "evaluate after every N updates, too, or Nepochs",
     setEvalEvery},
    {"eval-only", nullptr, "evaluate the model as it is, and train nothing",
     setTrue<&Options::evalOnly>},
    {"eval-raw", nullptr,
     "of a program that averages its weights: evaluate the weights themselves",
     setTrue<&Options::evaluatesRaw>},
    {"metrics", "LIST",
     "what else to make of an evaluation: perplexity, and what was "
     "compiled in: top-5, mae",
     setMetrics},
    {"save-best", "FILE[:METRIC]",
     "the model at its best evaluation, by loss or METRIC", setSaveBest},
    {"stop-after-no-gain", "N",
     "end when N evaluations in a row were not better",
     setInteger<&Options::mostWithoutGain, 1>},
    {"progress", "SECONDS|off", "how often progress is shown (10)",
     setProgress},
    {"quiet", nullptr, "print warnings and errors only",
     setTrue<&Options::quiet>},
    {"summary-json", "FILE", "the table that ends a training, as JSON",
     setFile<&Options::summaryJson>},
    {"metrics-port", "P",
     "answer GET /metrics for Prometheus on this port (0: a free one)",
     setPort},
    {"metrics-address", "A", "and on this address of the host (127.0.0.1)",
     setFile<&Options::metricsAddress>},
    {"tensorboard", "DIR", "write scalars for TensorBoard into this folder",
     setFile<&Options::tensorboard>},
    {"verify", nullptr, "run again on one device and compare bitwise",
     setTrue<&Options::verify>},
    {"on-nan", "stop|warn",
     "end with code 7 when the loss is not finite, or go on (stop)", setOnNan},
    {"checkpoint-dir", "DIR", "folder of checkpoints, for this run alone",
     setFile<&Options::checkpointDir>},
    {"checkpoint-every", "N", "write one after every N updates, too",
     setInteger<&Options::checkpointEvery, 1>},
    {"checkpoint-keep", "K", "remove the oldest but for K of them (3)",
     setInteger<&Options::checkpointKeep, 1>},
    {"checkpoint-failure", "warn|stop",
     "what one that cannot be written does to the run (warn)",
     setCheckpointFailure},
    {"resume", "DIR", "go on from a checkpoint, or the newest in a folder",
     setFile<&Options::resume>},
    {"resume-if-any", nullptr, "go on from --checkpoint-dir if it has any",
     setTrue<&Options::resumeIfAny>},
    {"resume-weights", nullptr, "take weights alone, and begin at update 0",
     setTrue<&Options::resumeWeights>},
    {"watchdog", "SECONDS",
     "end with code 6 when nothing moves so long (auto, off in one process)",
     setWatchdog, For::Both},
    {"gpus", "LIST", "GPUs of the devices, in turn, as 0,1 (all)", setGpus,
     For::Both},
    {"tune", "FILE",
     "on GPUs, the fastest algorithms of cuBLASLt and cuDNN by measurement, "
     "kept in FILE (what these suggest)",
     setFile<&Options::tune>, For::Both},
    {"transport", "NAME", "auto, threads, mpi or nccl (auto)", setTransport,
     For::Both},
    {"alone", nullptr, "train by itself, though a launcher started several",
     setTrue<&Options::isAlone>, For::Both},
    {"start-timeout", "SECONDS", "wait so long for other processes (60)",
     setNumber<&Options::startTimeout>, For::Both},
    {"peer-timeout", "SECONDS",
     "take a process without a sign of life for lost (3; 0: never)",
     setNumber<&Options::peerTimeout>, For::Both},
    {"mixed-cpus", nullptr, "let processes have CPUs of different kinds",
     setTrue<&Options::mixedCpus>, For::Both},
    {"plan", nullptr, "print the compiler's plan (JSON) and end",
     setTrue<&Options::plan>, For::Both},
    {"help", nullptr, "print this and end", setTrue<&Options::help>, For::Both},
    {"version", nullptr, "print the version and end",
     setTrue<&Options::version>, For::Both},
};

const Flag *findFlag(const std::string &name) {
  for (const Flag &flag : kFlags)
    if (name == flag.name)
      return &flag;
  return nullptr;
}

Error unknownFlag(const std::string &name) {
  std::vector<std::string> names;
  for (const Flag &flag : kFlags)
    names.emplace_back(flag.name);
  std::string nearest = penstock::findNearest(name, names);
  if (nearest.empty())
    return userError("unknown flag --%s (see --help)", name.c_str());
  return userError("unknown flag --%s; did you mean --%s? (see --help)",
                   name.c_str(), nearest.c_str());
}

} // namespace

Error penstock::runtime::setOption(Options &options, const std::string &name,
                                   const char *value) {
  const Flag *flag = findFlag(name);
  if (!flag)
    return unknownFlag(name);
  if (flag->value && !value)
    return userError("--%s needs a value: %s", flag->name, flag->value);
  if (!flag->value && value)
    return userError("--%s takes no value", flag->name);
  auto isSame = [&](const Options::Given &given) {
    return given.name == flag->name;
  };
  if (std::none_of(options.given.begin(), options.given.end(), isSame))
    options.given.push_back({flag->name, flag->kind});
  return flag->set(options, flag->name, value);
}

Error penstock::runtime::parseCommandLine(Options &options, int argc,
                                          char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.substr(0, 2) != "--" || argument.size() == 2)
      return userError("unexpected argument '%s' (see --help)",
                       argument.c_str());
    size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals - 2);
    const char *value = nullptr;
    if (equals != std::string::npos) {
      name = argument.substr(2, equals - 2);
      value = argv[i] + equals + 1;
    } else if (const Flag *flag = findFlag(name); flag && flag->value) {
      // A following flag is not a value.
      if (i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0)
        value = argv[++i];
    }
    if (Error error = setOption(options, name, value))
      return error;
  }
  return {};
}

std::string penstock::runtime::helpText(const penstock_program &program,
                                        const char *executable) {
  std::string text = format("usage: %s", executable);
  std::string inputs, outputs;
  bool isInference = infers(program), hasSamples = sourcesShareSamples(program);
  auto describe = [&](const char *name, const penstock_tensor &type) {
    std::vector<int64_t> shape(type.shape, type.shape + type.rank);
    std::string dimensions = shapeText(shape.data(), shape.size());
    if (hasSamples && !shape.empty() && shape[0] == program.microbatch_size)
      dimensions.replace(1, format("%lld", (long long)shape[0]).size(),
                         "samples");
    return format("  %-22s %s %s\n", penstock::toOneLine(name).c_str(),
                  elementName(type.element), dimensions.c_str());
  };
  for (const penstock_channel *source : findSources(program)) {
    const char *name = source->endpoint;
    bool isLabels = source->role == PENSTOCK_CHANNEL_LABELS && !isInference;
    text += isLabels ? " --labels FILE.npy"
                     : format(" --data %s=FILE.npy",
                              penstock::toOneLine(name).c_str());
    inputs += describe(name, source->type);
  }
  for (uint32_t i = 0; isInference && i < program.channel_count; ++i)
    if (isSink(program.channels[i]))
      outputs +=
          describe(program.channels[i].endpoint, program.channels[i].type);
  if (isInference)
    text += format(" --outputs DIR [options]\n\nRuns a model in %u stages on "
                   "%u devices.\n\ninputs:\n%s\noutputs:\n%s\noptions:\n",
                   program.stage_count, program.device_count, inputs.c_str(),
                   outputs.c_str());
  else
    text += format(" --steps N [options]\n\nTrains a model in %u stages on "
                   "%u devices (method %s, schedule %s).\n\ninputs:\n%s\n"
                   "options:\n",
                   program.stage_count, program.device_count, program.method,
                   program.schedule, inputs.c_str());
  For other = isInference ? For::Training : For::Inference;
  for (const Flag &flag : kFlags) {
    if (!flag.help || flag.kind == other)
      continue;
    std::string left = format("--%s%s%s", flag.name, flag.value ? " " : "",
                              flag.value ? flag.value : "");
    text += format("  %-26s %s\n", left.c_str(), flag.help);
  }
  text += "\nexit codes: 0 done, 1 user error, 2 defect, 3 does not fit, "
          "4 verification failed,\n5 a peer failed, 6 watchdog, 7 the loss "
          "or a weight is not finite,\n130 and 143 interrupted\n";
  return text;
}
