//===- WriteModel.cpp - The model with the weights of a checkpoint --------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The initializers that the checkpoint names become variables of a program that
// has nothing else, and are saved as those of any program.
//===----------------------------------------------------------------------===//

#include "tools/penstock-checkpoint/WriteModel.h"

#include "lib/Import/ExternalData.h"
#include "penstock/one_line.h"
#include "penstock/severity.h"
#include "penstock/sha256.h"
#include "runtime/io/ModelWriter.h"

#include <deque>
#include <filesystem>
#include <map>

using namespace penstock::runtime;
using penstock::onnx::TensorRecord;

namespace {

class Writer {
public:
  Writer(const Checkpoint &checkpoint, bool isRaw)
      : checkpoint(checkpoint), isRaw(isRaw) {}

  Error open(const std::string &model);
  Error write(const std::string &output);

private:
  Error openModel(const std::string &path);
  void offer(const ManifestTensor &tensor, const char *values);
  Error addWeight(const ManifestTensor &tensor, const char *values);
  Error openExternal(const TensorRecord &record);

  const Checkpoint &checkpoint;
  const bool isRaw;
  penstock_program program = {};
  std::deque<std::string> paths; ///< of `files`
  std::vector<penstock_file> descriptions;
  std::vector<MappedFile> files, values;
  penstock::onnx::ModelRecord record;
  std::map<std::string_view, const TensorRecord *> initializers;
  std::map<std::string, int32_t> external; ///< `files` by location
  struct Weight {
    int rank = 0;
    const ManifestTensor *tensor = nullptr;
    const char *values = nullptr;
  };
  std::map<std::string_view, Weight> best; ///< by initializer
  std::vector<penstock_variable> variables;
  std::vector<const char *> sources; ///< by variable
};

} // namespace

/// The entry of a tensor's external data, or "".
static std::string getLocation(const TensorRecord &record) {
  for (const auto &[key, value] : record.externalData)
    if (key == "location")
      return value;
  return "";
}

Error Writer::openModel(const std::string &path) {
  paths.push_back(path);
  if (Error error = files.emplace_back().open(path, "--onnx"))
    return error;
  llvm::Expected<penstock::onnx::ModelRecord> walked =
      penstock::onnx::walkModel({files[0].data(), files[0].size()});
  if (!walked) {
    llvm::consumeError(walked.takeError());
    return userError("--onnx: '%s' is not a binary ONNX model", path.c_str());
  }
  record = std::move(*walked);
  for (const TensorRecord &tensor : record.initializers) {
    if (!initializers.try_emplace(tensor.name, &tensor).second)
      initializers[tensor.name] = nullptr; // not to be told from another one
    if (tensor.external)
      if (Error error = openExternal(tensor))
        return error;
  }
  uint8_t digest[32];
  penstock_sha256(files[0].data(), files[0].size(), digest);
  std::string text;
  for (uint8_t byte : digest)
    text += format("%02x", byte);
  if (text != checkpoint.manifest.model)
    std::fprintf(stderr,
                 "%s'%s' is another file than the model that was trained\n",
                 penstock::getSeverityText(penstock::Severity::Note),
                 penstock::toOneLine(path).c_str());
  return {};
}

Error Writer::openExternal(const TensorRecord &record) {
  std::string location = getLocation(record);
  if (!external.try_emplace(location, int32_t(paths.size())).second)
    return {};
  std::filesystem::path folder = std::filesystem::path(paths[0]).parent_path();
  paths.push_back((folder / location).string());
  return files.emplace_back().open(paths.back(), "--onnx");
}

/// Keeps what stands for the initializer best: the weights as they are in the
/// program, what they are rounded from, or their average.
void Writer::offer(const ManifestTensor &tensor, const char *values) {
  int rank = tensor.kind.empty()              ? 0
             : tensor.kind == "master"        ? 1
             : tensor.kind == "ema" && !isRaw ? 2
                                              : -1;
  if (rank < 0)
    return;
  Weight &known = best[tensor.name];
  if (!known.tensor || rank > known.rank)
    known = {rank, &tensor, values};
}

Error Writer::addWeight(const ManifestTensor &tensor, const char *source) {
  auto found = initializers.find(tensor.name);
  if (found == initializers.end() || !found->second)
    return userError("--onnx: '%s' has %s initializer '%s'", paths[0].c_str(),
                     found == initializers.end() ? "no" : "more than one",
                     tensor.name.c_str());
  const TensorRecord &record = *found->second;
  penstock_variable variable = {};
  if (record.external) {
    llvm::Expected<penstock::onnx::ExternalRange> range =
        penstock::onnx::resolveExternalData(record, paths[0], tensor.bytes);
    if (!range)
      return userError("--onnx: '%s': %s", paths[0].c_str(),
                       llvm::toString(range.takeError()).c_str());
    variable.file = external.at(getLocation(record));
    variable.file_offset = range->offset;
  } else if (!record.hasBytes || record.length != tensor.bytes) {
    return userError(
        "--onnx: initializer '%s' of '%s' has %llu bytes, and %llu "
        "in the checkpoint",
        tensor.name.c_str(), paths[0].c_str(),
        (unsigned long long)(record.hasBytes ? record.length : 0),
        (unsigned long long)tensor.bytes);
  } else {
    variable.file_offset = record.offset;
  }
  variable.name = tensor.name.c_str();
  variable.kind = "";
  variable.role = PENSTOCK_ROLE_PARAMETER;
  variable.of = uint32_t(variables.size());
  variable.type = {tensor.element, uint32_t(tensor.shape.size()),
                   tensor.shape.data(), tensor.bytes};
  variables.push_back(variable);
  sources.push_back(source);
  return {};
}

Error Writer::open(const std::string &model) {
  if (Error error = openModel(model))
    return error;
  for (const ManifestFile &file : checkpoint.manifest.files) {
    if (std::string problem =
            mapCheckpointFile(checkpoint, file, values.emplace_back());
        !problem.empty())
      return userError("%s", problem.c_str());
    for (const ManifestTensor &tensor : file.tensors)
      offer(tensor, values.back().data() + tensor.offset);
  }
  for (const auto &[name, weight] : best)
    if (Error error = addWeight(*weight.tensor, weight.values))
      return error;
  for (size_t i = 0; i < paths.size(); ++i)
    descriptions.push_back({paths[i].c_str(), files[i].size(), {}, {}});
  program.file_count = uint32_t(descriptions.size());
  program.files = descriptions.data();
  program.variable_count = uint32_t(variables.size());
  program.variables = variables.data();
  return {};
}

Error Writer::write(const std::string &output) {
  ModelWriter writer(program, files, "-o");
  if (Error error = writer.check(output))
    return error;
  return writer.write(
      output, [&](const penstock_variable &variable, const TakePiece &take) {
        return take(sources[size_t(&variable - variables.data())],
                    variable.type.bytes);
      });
}

Error penstock::runtime::writeModel(const Checkpoint &checkpoint,
                                    const std::string &model,
                                    const std::string &output, bool isRaw) {
  Writer writer(checkpoint, isRaw);
  if (Error error = writer.open(model))
    return error;
  if (Error error = writer.write(output))
    return error;
  std::printf("%s with the weights of update %lld: %s\n",
              penstock::toOneLine(model).c_str(),
              (long long)checkpoint.manifest.step,
              penstock::toOneLine(output).c_str());
  return {};
}
