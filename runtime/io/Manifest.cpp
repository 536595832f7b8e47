//===- Manifest.cpp - What a checkpoint holds, and of which run -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written for people, too: in an order, a line for each tensor. Version 1; a
// reader takes all versions up to its own.
//===----------------------------------------------------------------------===//

#include "runtime/io/Manifest.h"

#include "penstock/checksum.h"
#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace penstock::runtime;

static constexpr int64_t kVersion = 1;
static constexpr char kFormat[] = "penstock-checkpoint";

std::string penstock::runtime::fileNameOf(const ManifestTensor &tensor) {
  return tensor.kind.empty() ? tensor.name : tensor.kind + ":" + tensor.name;
}

uint64_t penstock::runtime::countBytes(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const ManifestFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
/// The members of an object, as text.
class Members {
public:
  explicit Members(const char *separator) : separator(separator) {}

  void add(const char *key, const std::string &value) {
    addText(key, quoteJson(value));
  }
  void add(const char *key, int64_t value) {
    addText(key, std::to_string(value));
  }
  void add(const char *key, const std::vector<int64_t> &values) {
    std::string list;
    for (int64_t value : values)
      list += (list.empty() ? "" : ", ") + std::to_string(value);
    addText(key, "[" + list + "]");
  }
  void addText(const char *key, const std::string &value) {
    text += text.empty() ? "" : ",";
    text += std::string(separator) + "\"" + key + "\": " + value;
  }

  std::string text;

private:
  const char *separator;
};
} // namespace

static std::string toText(const ManifestTensor &tensor) {
  Members members(" ");
  members.add("name", tensor.name);
  members.add("kind", tensor.kind);
  members.add("type", std::string(safetensorsType(tensor.element)));
  members.add("shape", tensor.shape);
  members.add("offset", int64_t(tensor.offset));
  members.add("bytes", int64_t(tensor.bytes));
  members.add("xxh3", tensor.checksum);
  return "{" + members.text + " }";
}

static std::string toText(const ManifestFile &file) {
  Members members("\n      ");
  members.add("name", file.name);
  members.add("bytes", int64_t(file.bytes));
  members.add("xxh3", file.checksum);
  members.add("rank", file.rank);
  std::string tensors;
  for (const ManifestTensor &tensor : file.tensors)
    tensors +=
        (tensors.empty() ? "\n        " : ",\n        ") + toText(tensor);
  members.addText("tensors", "[" + tensors + "]");
  return "\n    {" + members.text + "}";
}

static std::string toText(const ManifestData &data) {
  Members members(" ");
  members.add("name", data.name);
  members.add("type", data.type);
  members.add("shape", data.shape);
  members.add("xxh3", data.checksum);
  return "\n    {" + members.text + " }";
}

static std::string toText(const ManifestEvaluation &evaluation) {
  Members members(" ");
  members.add("step", evaluation.step);
  if (evaluation.bestStep >= 0) {
    members.add("best_step", evaluation.bestStep);
    members.add("metric", evaluation.metric);
    members.addText("best", format("%.17g", evaluation.best));
  }
  members.add("without_gain", evaluation.withoutGain);
  return "{" + members.text + " }";
}

template <typename T> static std::string toList(const std::vector<T> &values) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : ",") + toText(value);
  return "[" + text + "]";
}

std::string penstock::runtime::writeManifest(const Manifest &manifest) {
  Members members("\n  ");
  members.add("format", std::string(kFormat));
  members.add("version", kVersion);
  members.add("step", manifest.step);
  members.add("samples", manifest.samples);
  members.add("samples_per_update", manifest.samplesPerUpdate);
  members.add("samples_per_pass", manifest.samplesPerPass);
  members.add("pass", manifest.samplesPerPass
                          ? manifest.samples / manifest.samplesPerPass
                          : 0);
  members.add("microbatches", manifest.microbatches);
  members.add("seed", manifest.seed);
  members.addText("shuffle", manifest.shuffle ? "true" : "false");
  members.add("last", manifest.last);
  members.addText("lr", format("%.17g", manifest.rate));
  members.add("method", manifest.method);
  members.add("schedule", manifest.schedule);
  members.add("optimizer", manifest.optimizer);
  members.add("stages", manifest.stages);
  members.add("replicas", manifest.replicas);
  members.add("checkpoint_every", manifest.checkpointEvery);
  members.add("eval_every", manifest.evalEvery);
  if (manifest.evaluation.step >= 0)
    members.addText("evaluation", toText(manifest.evaluation));
  members.add("segment_starts", manifest.segmentStarts);
  members.add("model", manifest.model);
  members.add("program", manifest.program);
  members.add("precision", manifest.precision);
  members.addText("data", toList(manifest.data));
  members.addText("files", toList(manifest.files));
  members.add("finished_at", manifest.finishedAt);
  return sealManifest("{" + members.text);
}

static constexpr std::string_view kSeal = ",\n  \"manifest_xxh3\": \"";

std::string penstock::runtime::sealManifest(std::string object) {
  std::string checksum = getChecksumText(object.data(), object.size());
  return object + std::string(kSeal) + checksum + "\"\n}\n";
}

std::string
penstock::runtime::writeIndex(const std::vector<ManifestFile> &files) {
  uint64_t total = 0;
  std::string map;
  for (const ManifestFile &file : files)
    for (const ManifestTensor &tensor : file.tensors) {
      if (!tensor.kind.empty())
        continue;
      total += tensor.bytes;
      map += (map.empty() ? "\n    " : ",\n    ") + quoteJson(tensor.name) +
             ": " + quoteJson(file.name);
    }
  return "{\n  \"metadata\": {\"total_size\": " + std::to_string(total) +
         "},\n  \"weight_map\": {" + map + "\n  }\n}\n";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool isChecksum(const std::string &text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Names of our own making only: no folder, nothing hidden.
static bool isFileName(const std::string &name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

/// A kind is a word, so that "kind:name" says which is which; "word@1" is that
/// of the second worker.
static bool isKind(const std::string &kind) {
  constexpr size_t kMostDigits = 4;
  size_t at = std::min(kind.find('@'), kind.size());
  if (at < kind.size() && (at == 0 || kind.size() - at - 1 > kMostDigits ||
                           at + 1 == kind.size() || kind[at + 1] == '0' ||
                           !std::all_of(
                               kind.begin() + at + 1, kind.end(),
                               [](char c) { return c >= '0' && c <= '9'; })))
    return false;
  return std::all_of(kind.begin(), kind.begin() + at,
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

static std::string readTensor(const Json &entry, const ManifestFile &file,
                              ManifestTensor &tensor) {
  std::string type;
  if (!getMember(entry, "name", tensor.name) || tensor.name.empty())
    return "a tensor of '" + file.name + "' has no name";
  std::string what =
      "tensor '" + tensor.name + "' of '" + file.name + "' has no ";
  if (!getMember(entry, "kind", tensor.kind) || !isKind(tensor.kind))
    return what + "kind";
  if (!getMember(entry, "type", type))
    return what + "type";
  tensor.element = elementOfType(type);
  if (!tensor.element)
    return "tensor '" + tensor.name + "' of '" + file.name +
           "' has the unknown type '" + type + "'";
  uint64_t expected = 0;
  if (!getMember(entry, "shape", tensor.shape) ||
      !countBytes(tensor.element, tensor.shape, expected))
    return what + "shape that could be stored";
  if (!getMember(entry, "offset", tensor.offset) ||
      !getMember(entry, "bytes", tensor.bytes))
    return what + "'offset' and 'bytes'";
  if (tensor.bytes != expected)
    return format("tensor '%s' of '%s' has %llu bytes, but its type and shape "
                  "take %llu",
                  tensor.name.c_str(), file.name.c_str(),
                  (unsigned long long)tensor.bytes,
                  (unsigned long long)expected);
  if (tensor.offset > file.bytes || tensor.bytes > file.bytes - tensor.offset)
    return "tensor '" + tensor.name + "' is outside of '" + file.name + "'";
  if (!getMember(entry, "xxh3", tensor.checksum) ||
      !isChecksum(tensor.checksum, 32))
    return what + "checksum";
  return "";
}

static std::string readFile(const Json &entry, ManifestFile &file) {
  if (!getMember(entry, "name", file.name) || !isFileName(file.name))
    return "a file has no name, or one that leads out of the folder";
  if (!getMember(entry, "bytes", file.bytes) || file.bytes > INT64_MAX)
    return "file '" + file.name + "' has no size";
  if (!getMember(entry, "xxh3", file.checksum) ||
      !isChecksum(file.checksum, 32))
    return "file '" + file.name + "' has no checksum";
  if (!getMember(entry, "rank", file.rank) || file.rank < 0)
    return "file '" + file.name + "' has no rank";
  auto tensors = entry.find("tensors");
  if (tensors == entry.end() || !tensors->is_array())
    return "file '" + file.name + "' has no list of tensors";
  for (const Json &each : *tensors)
    if (std::string problem =
            readTensor(each, file, file.tensors.emplace_back());
        !problem.empty())
      return problem;
  return "";
}

static std::string readData(const Json &entry, ManifestData &data) {
  if (!getMember(entry, "name", data.name) ||
      !getMember(entry, "type", data.type) ||
      !getMember(entry, "shape", data.shape) ||
      !getMember(entry, "xxh3", data.checksum))
    return "an array of 'data' has no name, type, shape or checksum";
  return "";
}

template <typename T, typename Read>
static std::string readList(const Json &object, const char *key,
                            std::vector<T> &values, Read read) {
  auto list = object.find(key);
  if (list == object.end() || !list->is_array())
    return std::string("it has no list '") + key + "'";
  for (const Json &each : *list)
    if (std::string problem = read(each, values.emplace_back());
        !problem.empty())
      return problem;
  return "";
}

/// Files and tensors are there once.
static std::string findTwice(const Manifest &manifest) {
  std::set<std::string> files;
  std::set<std::pair<std::string, std::string>> tensors;
  for (const ManifestFile &file : manifest.files) {
    if (!files.insert(file.name).second)
      return "it has the file '" + file.name + "' twice";
    for (const ManifestTensor &tensor : file.tensors)
      if (!tensors.insert({tensor.kind, tensor.name}).second)
        return "it has the tensor '" + fileNameOf(tensor) + "' twice";
  }
  return "";
}

static bool readEvaluation(const Json &entry, ManifestEvaluation &evaluation) {
  if (!entry.is_object() || !getMember(entry, "step", evaluation.step) ||
      !getMember(entry, "without_gain", evaluation.withoutGain) ||
      evaluation.step < 0 || evaluation.withoutGain < 0)
    return false;
  if (!entry.contains("best_step"))
    return true;
  return getMember(entry, "best_step", evaluation.bestStep) &&
         getMember(entry, "metric", evaluation.metric) &&
         getMember(entry, "best", evaluation.best) && evaluation.bestStep >= 0;
}

std::string penstock::runtime::readManifest(std::string_view text,
                                            Manifest &manifest) {
  manifest = {};
  Json object;
  if (std::string problem = parseJson(text, object); !problem.empty())
    return problem;
  std::string kind;
  int64_t version = 0;
  if (!getMember(object, "format", kind) || kind != kFormat ||
      !getMember(object, "version", version))
    return "it is no manifest of a checkpoint";
  if (version > kVersion)
    return format("it has version %lld of the format, and this program reads "
                  "versions up to %lld; use a newer one",
                  (long long)version, (long long)kVersion);

  size_t seal = text.rfind(kSeal);
  if (seal == std::string_view::npos ||
      text.substr(seal + kSeal.size()).substr(0, 32) !=
          getChecksumText(text.data(), seal))
    return "it is damaged (checksum)";

  auto getCount = [&](const char *key, int64_t &value) {
    return getMember(object, key, value) && value >= 0;
  };
  std::string missing;
  auto need = [&](const char *key, bool isThere) {
    if (!isThere && missing.empty())
      missing = std::string("it has no '") + key + "', or one of another type";
  };
  Manifest &m = manifest;
  need("step", getCount("step", m.step));
  need("samples", getCount("samples", m.samples));
  need("samples_per_update",
       getCount("samples_per_update", m.samplesPerUpdate));
  need("samples_per_pass", getCount("samples_per_pass", m.samplesPerPass));
  need("microbatches", getCount("microbatches", m.microbatches));
  need("seed", getMember(object, "seed", m.seed));
  need("shuffle", getMember(object, "shuffle", m.shuffle));
  need("lr", getMember(object, "lr", m.rate));
  need("method", getMember(object, "method", m.method));
  need("schedule", getMember(object, "schedule", m.schedule));
  need("optimizer", getMember(object, "optimizer", m.optimizer));
  need("stages", getCount("stages", m.stages));
  need("replicas", getMember(object, "replicas", m.replicas));
  need("checkpoint_every", getCount("checkpoint_every", m.checkpointEvery));
  need("eval_every", getCount("eval_every", m.evalEvery));
  need("segment_starts", getMember(object, "segment_starts", m.segmentStarts));
  need("model", getMember(object, "model", m.model) && isChecksum(m.model, 64));
  need("program", getMember(object, "program", m.program));
  need("precision", getMember(object, "precision", m.precision));
  // Those that the first checkpoints did not have.
  if (object.contains("last"))
    need("last", getMember(object, "last", m.last));
  if (auto found = object.find("evaluation"); found != object.end())
    need("evaluation", readEvaluation(*found, m.evaluation));
  need("finished_at", getMember(object, "finished_at", m.finishedAt));
  if (!missing.empty())
    return missing;
  if (std::string problem = readList(object, "data", m.data, readData);
      !problem.empty())
    return problem;
  if (std::string problem = readList(object, "files", m.files, readFile);
      !problem.empty())
    return problem;
  return findTwice(manifest);
}
