//===- Options.cpp - What a run was asked for -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of options against each other and against the program.
//===----------------------------------------------------------------------===//

#include "runtime/run/Options.h"

#include "runtime/io/File.h"

using namespace penstock::runtime;

Error Options::checkTogether() const {
  if (steps && epochs)
    return userError("--steps and --epochs exclude each other");
  const std::pair<const char *, const std::string *> outputs[] = {
      {"log", &log},
      {"save", &save},
      {"save-best", &saveBest},
      {"save-raw", &saveRaw},
      {"trace", &trace},
      {"memory", &memory},
      {"summary-json", &summaryJson},
      {"tune", &tune}};
  for (const auto &first : outputs)
    for (const auto &second : outputs)
      if (&first < &second && wouldReplace(*first.second, *second.second))
        return userError("--%s and --%s name the same file '%s'", first.first,
                         second.first, first.second->c_str());
  // A pipe is read once.
  constexpr const char *kStream = "-";
  bool evaluatesStream = evalLabels == kStream;
  for (const auto &[name, path] : evalData)
    evaluatesStream |= path == kStream;
  if (evaluatesStream)
    return userError("--eval-data: standard input is read once, and only by "
                     "--data; write the samples to a file");
  if (readsStream())
    for (auto [flag, isGiven] : {std::pair("shuffle", shuffle),
                                 {"verify", verify},
                                 {"resume", !resume.empty()},
                                 {"resume-if-any", resumeIfAny},
                                 {"last", last != Last::Drop},
                                 {"epochs", epochs && *epochs > 1}})
      if (isGiven)
        return userError("--%s: --data=- is read once, in order; write the "
                         "samples to a file, or leave --%s out",
                         flag, flag);
  // The memory report is of a program that has been opened.
  bool hasResult =
      evaluates() || !save.empty() || !saveRaw.empty() || !memory.empty();
  if ((steps == 0 || epochs == 0) && !hasResult)
    return userError("--%s 0 does nothing: it needs --eval-data, --save or "
                     "--memory",
                     steps ? "steps" : "epochs");
  if (checkpointDir.empty())
    for (auto [flag, isGiven] :
         {std::pair("checkpoint-every", checkpointEvery.has_value()),
          {"checkpoint-keep", checkpointKeep.has_value()},
          {"resume-if-any", resumeIfAny}})
      if (isGiven)
        return userError("--%s needs --checkpoint-dir", flag);
  if (resumeIfAny && !resume.empty())
    return userError("--resume and --resume-if-any exclude each other");
  if (resumeWeights && resume.empty() && !resumeIfAny)
    return userError("--resume-weights needs --resume");
  for (auto [flag, isGiven] : {std::pair("steps", steps.has_value()),
                               {"epochs", epochs.has_value()},
                               {"checkpoint-dir", !checkpointDir.empty()}})
    if (evalOnly && isGiven)
      return userError("--eval-only trains nothing; leave --%s out", flag);
  for (auto [flag, isGiven] :
       {std::pair("eval-every", evalEvery.has_value()),
        {"eval-only", evalOnly},
        {"metrics", !metrics.empty()},
        {"save-best", !saveBest.empty()},
        {"eval-raw", evaluatesRaw},
        {"stop-after-no-gain", mostWithoutGain.has_value()}})
    if (isGiven && !evaluates())
      return userError("--%s needs --eval-data", flag);
  if (mostWithoutGain && !evalEvery)
    return userError("--stop-after-no-gain needs --eval-every");
  if (traceSteps && trace.empty())
    return userError("--trace-steps needs --trace");
  if (!metricsAddress.empty() && !metricsPort)
    return userError("--metrics-address needs --metrics-port");
  if (quiet && progressSeconds)
    return userError("--quiet and --progress exclude each other");
  return {};
}

Error Options::checkOverwrite(const char *flag, const std::string &output,
                              const std::vector<std::string> &inputs) const {
  for (const std::string &input : inputs)
    if (wouldReplace(output, input))
      return userError("--%s: '%s' would replace '%s', which this run reads; "
                       "choose another name",
                       flag, output.c_str(), input.c_str());
  if (wouldReplace(output, executablePath()))
    return userError("--%s: '%s' would replace the program that runs; choose "
                     "another name",
                     flag, output.c_str());
  return {};
}

Error Options::checkMode(bool infers) const {
  for (auto [name, kind] : given) {
    if (kind == For::Training && infers)
      return userError("--%s: this program does not train; it was compiled "
                       "with --mode=infer",
                       name);
    if (kind == For::Inference && !infers)
      return userError("--%s: this program trains; outputs are written by one "
                       "compiled with --mode=infer",
                       name);
  }
  return {};
}
