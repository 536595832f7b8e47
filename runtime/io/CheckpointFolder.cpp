//===- CheckpointFolder.cpp - The checkpoints of a run --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every problem begins with the path of the file that has it.
//===----------------------------------------------------------------------===//

#include "runtime/io/CheckpointFolder.h"

#include "penstock/checksum.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace penstock::runtime;

static constexpr std::string_view kPrefix = "step-";
static constexpr std::string_view kUnfinished = ".part";
/// As many tensors as a manifest of this size has are more than any model's.
static constexpr uint64_t kMostManifestBytes = 100'000'000;

std::string penstock::runtime::checkpointName(int64_t step) {
  return format("step-%09lld", (long long)step);
}

std::optional<int64_t> penstock::runtime::stepOfName(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  std::string_view digits = name.substr(kPrefix.size());
  int64_t step = 0;
  auto [stop, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // As it is written, and not in another way.
  if (status != std::errc() || stop != digits.data() + digits.size() ||
      step < 0 || checkpointName(step) != name)
    return std::nullopt;
  return step;
}

std::vector<int64_t>
penstock::runtime::listCheckpoints(const std::string &folder) {
  std::vector<int64_t> steps;
  std::error_code status;
  for (std::filesystem::directory_iterator at(folder, status), end;
       !status && at != end; at.increment(status))
    if (std::optional<int64_t> step =
            stepOfName(at->path().filename().string()))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string penstock::runtime::findCheckpoint(const std::string &path) {
  std::string whole = path;
  while (whole.size() > 1 && whole.back() == '/')
    whole.pop_back();
  struct stat info;
  if (stat((whole + "/manifest.json").c_str(), &info) == 0 ||
      stepOfName(whole.substr(whole.rfind('/') + 1)))
    return whole;
  std::vector<int64_t> steps = listCheckpoints(whole);
  return steps.empty() ? "" : whole + "/" + checkpointName(steps.back());
}

std::string penstock::runtime::readCheckpoint(const std::string &path,
                                              Checkpoint &checkpoint) {
  checkpoint.path = path;
  std::string name = path + "/manifest.json";
  MappedFile text;
  if (Error error = text.openUnlinked(name, "manifest"))
    return error.text;
  if (text.size() > kMostManifestBytes)
    return name + ": it is too long for a manifest";
  checkpoint.checksum = getChecksumText(text.data(), text.size());
  if (std::string problem =
          readManifest({text.data(), text.size()}, checkpoint.manifest);
      !problem.empty())
    return name + ": " + problem;
  for (const ManifestFile &file : checkpoint.manifest.files) {
    std::string each = path + "/" + file.name;
    struct stat info;
    if (lstat(each.c_str(), &info) != 0)
      return each + ": " +
             (errno == ENOENT ? format("it is missing, and rank %lld wrote it",
                                       (long long)file.rank)
                              : std::strerror(errno));
    if (!S_ISREG(info.st_mode))
      return each + (S_ISLNK(info.st_mode)
                         ? ": it is a symbolic link, which is not followed"
                         : ": it is no file");
    if (uint64_t(info.st_size) != file.bytes)
      return each + format(": it has %lld bytes, and %llu were written",
                           (long long)info.st_size,
                           (unsigned long long)file.bytes);
  }
  return "";
}

std::string penstock::runtime::mapCheckpointFile(const Checkpoint &checkpoint,
                                                 const ManifestFile &file,
                                                 MappedFile &mapped) {
  std::string path = checkpoint.path + "/" + file.name;
  if (Error error = mapped.openUnlinked(path, "checkpoint"))
    return error.text;
  std::vector<SafeTensor> tensors;
  if (std::string problem = readSafetensorsHeader(
          {mapped.data(), mapped.size()}, mapped.size(), tensors);
      !problem.empty())
    return path + ": " + problem;
  std::map<std::string_view, const SafeTensor *> byName;
  for (const SafeTensor &tensor : tensors)
    byName[tensor.name] = &tensor;
  for (const ManifestTensor &tensor : file.tensors) {
    std::string name = fileNameOf(tensor);
    auto found = byName.find(name);
    if (found == byName.end() || found->second->element != tensor.element ||
        found->second->shape != tensor.shape ||
        found->second->offset != tensor.offset)
      return path + ": its header says otherwise of tensor '" + name +
             "' than the manifest";
  }
  if (tensors.size() != file.tensors.size())
    return path + ": it holds tensors that the manifest does not";
  return "";
}

std::string penstock::runtime::checkTensor(const Checkpoint &checkpoint,
                                           const ManifestFile &file,
                                           const ManifestTensor &tensor,
                                           const MappedFile &mapped) {
  // The range is inside: the manifest was read, and the size is the file's.
  if (mapped.size() == file.bytes &&
      getChecksumText(mapped.data() + tensor.offset, tensor.bytes) ==
          tensor.checksum)
    return "";
  return checkpoint.path + "/" + file.name + ": tensor '" + fileNameOf(tensor) +
         "' is damaged (checksum)";
}

std::string penstock::runtime::verifyCheckpoint(const Checkpoint &checkpoint) {
  for (const ManifestFile &file : checkpoint.manifest.files) {
    MappedFile mapped;
    if (std::string problem = mapCheckpointFile(checkpoint, file, mapped);
        !problem.empty())
      return problem;
    for (const ManifestTensor &tensor : file.tensors)
      if (std::string problem = checkTensor(checkpoint, file, tensor, mapped);
          !problem.empty())
        return problem;
    if (getChecksumText(mapped.data(), mapped.size()) != file.checksum)
      return checkpoint.path + "/" + file.name + ": it is damaged (checksum)";
  }
  return "";
}

std::string penstock::runtime::checkIndex(const Checkpoint &checkpoint) {
  std::string path = checkpoint.path + "/" + kIndexName;
  MappedFile text;
  if (Error error = text.openUnlinked(path, "index"))
    return error.text;
  if (std::string_view(text.data(), text.size()) ==
      writeIndex(checkpoint.manifest.files))
    return "";
  return path + ": it is damaged, but no resume reads it";
}

std::string penstock::runtime::findOtherWhole(const std::string &path) {
  std::string folder = folderOf(path);
  std::vector<int64_t> steps = listCheckpoints(folder);
  for (; !steps.empty(); steps.pop_back()) {
    std::string other = folder + "/" + checkpointName(steps.back());
    Checkpoint checkpoint;
    if (!sameFile(other, path) && readCheckpoint(other, checkpoint).empty() &&
        verifyCheckpoint(checkpoint).empty())
      return other;
  }
  return "";
}

bool penstock::runtime::removeFolder(const std::string &path) {
  std::error_code status;
  std::filesystem::remove_all(path, status);
  return !status;
}

CheckpointLock::~CheckpointLock() {
  if (descriptor >= 0)
    close(descriptor);
}

Error CheckpointLock::take(const std::string &folder) {
  auto failed = [&](const char *action, const std::string &path) {
    return userError("--checkpoint-dir: cannot %s '%s': %s", action,
                     path.c_str(), std::strerror(errno));
  };
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    if (!status)
      return userError("--checkpoint-dir: '%s' is no folder", folder.c_str());
    return userError("--checkpoint-dir: cannot create '%s': %s", folder.c_str(),
                     status.message().c_str());
  }
  std::string lock = folder + "/lock";
  descriptor =
      open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0)
    return failed("write", lock);
  // File systems without locks let all.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return userError("--checkpoint-dir: another run writes into '%s'; choose "
                     "another folder",
                     folder.c_str());
  std::vector<std::string> left;
  for (std::filesystem::directory_iterator at(folder, status), end;
       !status && at != end; at.increment(status)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(kUnfinished) &&
        stepOfName(
            std::string_view(name).substr(0, name.size() - kUnfinished.size())))
      left.push_back(name);
  }
  for (const std::string &name : left)
    removeFolder(folder + "/" + name);
  return {};
}

Error CheckpointLock::sign(const std::string &folder, const std::string &text) {
  if (ftruncate(descriptor, 0) == 0 &&
      pwrite(descriptor, text.data(), text.size(), 0) == ssize_t(text.size()))
    return {};
  return userError("--checkpoint-dir: cannot write '%s/lock': %s",
                   folder.c_str(), std::strerror(errno));
}

bool penstock::runtime::isSigned(const std::string &folder,
                                 const std::string &text) {
  int descriptor =
      open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    return false;
  // One byte more, so that a longer text differs.
  std::string found(text.size() + 1, 0);
  ssize_t length = read(descriptor, found.data(), found.size());
  close(descriptor);
  return length == ssize_t(text.size()) && found.substr(0, text.size()) == text;
}
