//===- PeerRecord.cpp - What a process says of itself ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a fixed order, so that records can be compared line by line.
//===----------------------------------------------------------------------===//

#include "penstock/checksum.h"
#include "runtime/device/Kinds.h"
#include "runtime/run/Peers.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace penstock::runtime;

/// "AMD EPYC 9654", and a checksum of what it can do.
static std::string describeCpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name, features;
  while (std::getline(file, line) && (name.empty() || features.empty())) {
    auto valueOf = [&](const char *key) {
      size_t colon = line.find(": ");
      return line.rfind(key, 0) == 0 && colon != std::string::npos
                 ? line.substr(colon + 2)
                 : std::string();
    };
    if (name.empty())
      name = valueOf("model name");
    if (features.empty())
      features = valueOf("flags");
  }
  return format(
      "%s (features %s)", name.c_str(),
      getChecksumText(features.data(), features.size()).substr(0, 8).c_str());
}

void penstock::runtime::describeMachine(Record &record, bool comparesCpus) {
  record.host = getHostName();
  record.pid = getpid();
  MappedFile executable;
  if (!executable.open("/proc/self/exe", "executable"))
    record.facts.push_back(
        {Fact::Executable, "",
         getChecksumText(executable.data(), executable.size())});
  if (comparesCpus)
    record.facts.push_back({Fact::Property, "CPU", describeCpu()});
  for (const char *name : {"DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"}) {
    const char *value = std::getenv(name);
    record.facts.push_back({Fact::Property, name, value ? value : ""});
  }
  // Every process has the kinds that the program uses.
  for (const char *name : {"cpu", "cuda"})
    if (const DeviceKind *kind = findDeviceKind(name); kind && kind->describe)
      record.facts.push_back({Fact::Property,
                              format("library of devices '%s'", name),
                              kind->describe()});
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed))
        record.cores.push_back(core);
}

/// The checksum of a file; empty where there is none.
static std::string checksumFile(const std::string &path) {
  MappedFile file;
  if (path.empty() || file.open(path, "digest"))
    return "";
  return getChecksumText(file.data(), file.size());
}

void penstock::runtime::describeFlags(Record &record, const Options &options) {
  auto add = [&](const char *flag, std::string value) {
    record.facts.push_back({Fact::Flag, flag, std::move(value)});
  };
  auto number = [](const auto &value) {
    return value ? format("%.17g", double(*value)) : std::string();
  };
  auto given = [](bool isGiven) { return std::string(isGiven ? "given" : ""); };
  add("--steps", number(options.steps));
  add("--epochs", number(options.epochs));
  add("--lr", number(options.rate));
  add("--seed", number(options.seed));
  add("--shuffle", given(options.shuffle));
  add("--last", nameOf(options.last));
  std::string every = number(options.evalEvery);
  add("--eval-every", options.isEvalEveryEpochs ? every + " epochs" : every);
  add("--eval-only", given(options.evalOnly));
  add("--eval-raw", given(options.evaluatesRaw));
  std::string metrics;
  for (const std::string &name : options.metrics)
    metrics += (metrics.empty() ? "" : ",") + name;
  add("--metrics", metrics);
  add("--stop-after-no-gain", number(options.mostWithoutGain));
  add("--save-best",
      options.saveBest.empty() ? "" : "given, by " + options.bestMetric);
  add("--eval-data", given(!options.evalData.empty()));
  add("--eval-labels", given(!options.evalLabels.empty()));
  add("--checkpoint-dir", given(!options.checkpointDir.empty()));
  add("--checkpoint-every", number(options.checkpointEvery));
  add("--checkpoint-failure", options.stopsOfCheckpoints ? "stop" : "");
  add("--resume", given(!options.resume.empty()));
  add("--resume-if-any", given(options.resumeIfAny));
  add("--resume-weights", given(options.resumeWeights));
  add("--tune", checksumFile(options.tune));
  add("--on-nan", options.warnsOfNotFinite ? "warn" : "");
  // What all have to do something for.
  add("--verify", given(options.verify));
  add("--save", given(!options.save.empty()));
  add("--save-raw", given(!options.saveRaw.empty()));
  add("--trace", given(!options.trace.empty()));
  add("--memory", given(!options.memory.empty()));
  add("--outputs", given(!options.outputs.empty()));
  add("--mixed-cpus", given(options.mixedCpus));
}
