//===- Compare.cpp - Two checkpoints, bit by bit --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Compare.h.
//===----------------------------------------------------------------------===//

#include "tools/penstock-checkpoint/Compare.h"

#include "runtime/io/Npy.h"

#include <cstring>
#include <map>

using namespace penstock::runtime;

namespace {
struct Place {
  const ManifestTensor *tensor = nullptr;
  const char *values = nullptr;
};
using Places = std::map<std::string, Place>;
} // namespace

static Error mapTensors(const Checkpoint &checkpoint,
                        std::vector<MappedFile> &mapped, Places &places) {
  mapped.resize(checkpoint.manifest.files.size());
  for (size_t i = 0; i < mapped.size(); ++i) {
    const ManifestFile &file = checkpoint.manifest.files[i];
    if (std::string problem = mapCheckpointFile(checkpoint, file, mapped[i]);
        !problem.empty())
      return userError("%s", problem.c_str());
    for (const ManifestTensor &tensor : file.tensors)
      places[fileNameOf(tensor)] = {&tensor, mapped[i].data() + tensor.offset};
  }
  return {};
}

static std::string describeDifference(const std::string &name,
                                      const Place &first, const Place &second) {
  uint64_t width = elementBytes(first.tensor->element);
  uint64_t count = first.tensor->bytes / width, different = 0, at = count;
  for (uint64_t i = 0; i < count; ++i)
    if (std::memcmp(first.values + i * width, second.values + i * width,
                    width) != 0) {
      at = std::min(at, i);
      ++different;
    }
  return format("'%s' differs in %llu of %llu elements, first in number %llu",
                name.c_str(), (unsigned long long)different,
                (unsigned long long)count, (unsigned long long)at);
}

Error penstock::runtime::compareCheckpoints(
    const Checkpoint &first, const Checkpoint &second,
    std::vector<std::string> &differences) {
  std::vector<MappedFile> firstFiles, secondFiles;
  Places firstPlaces, secondPlaces;
  if (Error error = mapTensors(first, firstFiles, firstPlaces))
    return error;
  if (Error error = mapTensors(second, secondFiles, secondPlaces))
    return error;
  if (first.manifest.samples != second.manifest.samples)
    differences.push_back(format("%lld samples were done in the first, %lld in "
                                 "the second",
                                 (long long)first.manifest.samples,
                                 (long long)second.manifest.samples));
  for (const auto &[name, place] : firstPlaces) {
    auto other = secondPlaces.find(name);
    if (other == secondPlaces.end())
      differences.push_back("'" + name + "' is in the first only");
    else if (place.tensor->element != other->second.tensor->element ||
             place.tensor->shape != other->second.tensor->shape)
      differences.push_back("'" + name + "' has another type or shape");
    else if (place.tensor->bytes &&
             std::memcmp(place.values, other->second.values,
                         place.tensor->bytes) != 0)
      differences.push_back(describeDifference(name, place, other->second));
  }
  for (const auto &[name, place] : secondPlaces)
    if (!firstPlaces.contains(name))
      differences.push_back("'" + name + "' is in the second only");
  return {};
}
