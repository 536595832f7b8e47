//===- CheckpointWriter.cpp - Checkpoints as training goes on -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain system calls in an order: the values, their names in the folder, the
// manifest, the name of the folder.
//===----------------------------------------------------------------------===//

#include "runtime/io/CheckpointWriter.h"

#include "penstock/checksum.h"
#include "runtime/io/Finite.h"
#include "runtime/io/ModelWriter.h"
#include "runtime/io/Safetensors.h"
#include "runtime/support/ThreadName.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace penstock::runtime;

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

StagingBlock::~StagingBlock() {
  if (begin)
    munmap(begin, length);
}

bool StagingBlock::open(uint64_t bytes) {
  length = std::max<uint64_t>(bytes, 1);
  void *mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return false;
  begin = static_cast<char *>(mapped);
  (void)madvise(begin, length, MADV_HUGEPAGE);
  return true;
}

void StagingBlock::populate() {
  constexpr uint64_t kPage = 4096;
  // All of it is zero. A page that is only read would not be there yet.
  for (uint64_t at = 0; at < length; at += kPage)
    *const_cast<volatile char *>(begin + at) = 0;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
/// A new file, which is on the disk when it is closed. Functions that fail
/// leave their reason in `problem`.
class DurableFile {
public:
  explicit DurableFile(std::string path) : path(std::move(path)) {}
  ~DurableFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }

  bool create() {
    descriptor =
        ::open(path.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return descriptor >= 0 || failed("create");
  }

  bool append(const char *data, uint64_t bytes) {
    while (bytes) {
      ssize_t done = ::write(descriptor, data, bytes);
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return failed("write");
      data += done;
      bytes -= uint64_t(done);
    }
    return true;
  }

  bool close() {
    if (fsync(descriptor) != 0)
      return failed("write");
    return ::close(std::exchange(descriptor, -1)) == 0 || failed("write");
  }

  std::string problem;

private:
  bool failed(const char *action) {
    problem = format("cannot %s '%s': %s", action, path.c_str(),
                     std::strerror(errno));
    return false;
  }

  std::string path;
  int descriptor = -1;
};
} // namespace

static std::string writeTextFile(const std::string &path,
                                 const std::string &text) {
  DurableFile file(path);
  (void)(file.create() && file.append(text.data(), text.size()) &&
         file.close());
  return file.problem;
}

/// The names in a folder are on the disk.
static bool syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  // Some file systems have nothing to do, and say so.
  bool isSynced = fsync(descriptor) == 0 || errno == EINVAL;
  int reason = errno;
  close(descriptor);
  errno = reason;
  return isSynced;
}

/// Writes one file of tensors, in which they have the order of `file`.
static std::string writeTensors(const std::string &folder, ManifestFile &file,
                                const std::vector<StagedTensor> &tensors) {
  std::vector<SafeTensor> entries;
  for (const ManifestTensor &tensor : file.tensors)
    entries.push_back({fileNameOf(tensor), tensor.element, tensor.shape});
  std::string header = makeSafetensorsHeader(entries);
  DurableFile output(folder + "/" + file.name);
  Checksum all;
  all.add(header.data(), header.size());
  if (!output.create() || !output.append(header.data(), header.size()))
    return output.problem;

  std::map<std::string, const StagedTensor *> byName;
  for (const StagedTensor &tensor : tensors)
    byName[fileNameOf(tensor.description)] = &tensor;
  std::vector<ManifestTensor> ordered;
  for (const SafeTensor &entry : entries) {
    const StagedTensor &staged = *byName.at(entry.name);
    ManifestTensor &tensor = ordered.emplace_back(staged.description);
    tensor.offset = entry.offset;
    tensor.bytes = entry.bytes;
    std::vector<char> turned;
    const char *values = staged.values;
    if (staged.variable->file_order) {
      turned = inFileOrder(*staged.variable, values);
      values = turned.data();
    }
    // Small enough to be in a cache when it is written.
    constexpr uint64_t kChunk = 1 << 18;
    Checksum own;
    for (uint64_t at = 0; at < entry.bytes; at += kChunk) {
      uint64_t bytes = std::min(kChunk, entry.bytes - at);
      own.add(values + at, bytes);
      all.add(values + at, bytes);
      if (!output.append(values + at, bytes))
        return output.problem;
    }
    tensor.checksum = own.getText();
    file.bytes = entry.offset + entry.bytes;
  }
  if (entries.empty())
    file.bytes = header.size();
  file.tensors = std::move(ordered);
  file.checksum = all.getText();
  if (!output.close())
    return output.problem;
  return "";
}

std::string
penstock::runtime::writeRankFiles(const std::string &folder, int64_t rank,
                                  const std::vector<StagedTensor> &tensors,
                                  std::vector<ManifestFile> &files) {
  for (const char *stem : {"weights", "state"}) {
    bool isState = stem[0] == 's';
    ManifestFile file;
    file.name = format("%s-%05lld.safetensors", stem, (long long)rank);
    file.rank = rank;
    std::vector<StagedTensor> own;
    for (const StagedTensor &tensor : tensors)
      if (tensor.description.kind.empty() != isState) {
        own.push_back(tensor);
        file.tensors.push_back(tensor.description);
      }
    if (own.empty())
      continue;
    if (std::string problem = writeTensors(folder, file, own); !problem.empty())
      return problem;
    files.push_back(std::move(file));
  }
  return "";
}

static std::string timeText() {
  time_t now = time(nullptr);
  tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string
penstock::runtime::finishCheckpoint(const std::string &folder,
                                    Manifest manifest,
                                    std::vector<ManifestFile> reports) {
  std::string name = folder + "/" + checkpointName(manifest.step);
  std::string part = name + ".part";
  manifest.files = std::move(reports);
  manifest.finishedAt = timeText();
  if (std::string problem =
          writeTextFile(part + "/" + kIndexName, writeIndex(manifest.files));
      !problem.empty())
    return problem;
  auto failed = [&](const std::string &path) {
    return format("cannot write '%s': %s", path.c_str(), std::strerror(errno));
  };
  std::string temporary = part + "/manifest.json.part",
              final = part + "/manifest.json";
  if (std::string problem = writeTextFile(temporary, writeManifest(manifest));
      !problem.empty())
    return problem;
  if (rename(temporary.c_str(), final.c_str()) != 0)
    return failed(final);
  if (!syncFolder(part))
    return failed(part);
  // One of this step may be there: a run that went on from an earlier one has
  // come here again. The two change places at once.
  if (rename(part.c_str(), name.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST)
      return failed(name);
    if (renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, name.c_str(),
                  RENAME_EXCHANGE) != 0)
      return failed(name);
    removeFolder(part);
  }
  return syncFolder(folder) ? "" : failed(folder);
}

void penstock::runtime::removeOldest(const std::string &folder, int64_t keep) {
  std::vector<int64_t> steps = listCheckpoints(folder);
  for (int64_t i = 0; i + keep < int64_t(steps.size()); ++i) {
    // First the name that says that it is whole.
    std::string name = folder + "/" + checkpointName(steps[size_t(i)]);
    std::string part = name + ".part";
    if (rename(name.c_str(), part.c_str()) == 0)
      removeFolder(part);
  }
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

/// Returns the checksum of the executable: it tells those that wrote
/// checkpoints apart.
static const std::string &checksumOfProgram() {
  static const std::string checksum = [] {
    MappedFile file;
    Error error = file.open("/proc/self/exe", "program");
    return error ? std::string() : getChecksumText(file.data(), file.size());
  }();
  return checksum;
}

CheckpointWriter::~CheckpointWriter() {
  if (thread.joinable())
    thread.join();
}

Error CheckpointWriter::open(const std::string &target, int64_t kept,
                             uint64_t bytes, bool notFinite,
                             CheckpointRanks &all) {
  if (all.getRank() == 0)
    if (Error error = lock.take(target))
      return error;
  if (!block.open(bytes))
    return doesNotFit("--checkpoint-dir: this machine has no %llu bytes of "
                      "memory to copy what is written",
                      (unsigned long long)bytes);
  folder = target;
  keep = kept;
  keepsNotFinite = notFinite;
  ranks = &all;
  // The first copy finds its pages there.
  thread = std::thread([this] {
    nameThread("checkpoint");
    block.populate();
  });
  return {};
}

StagingBlock &CheckpointWriter::beginStaging() {
  if (thread.joinable())
    thread.join();
  return block;
}

void CheckpointWriter::start(Manifest manifest,
                             std::vector<StagedTensor> tensors) {
  busy = true;
  thread = std::thread([this, manifest = std::move(manifest),
                        tensors = std::move(tensors)]() mutable {
    nameThread("checkpoint");
    int64_t begin = nanoseconds();
    problem = write(std::move(manifest), tensors);
    statistics.seconds += double(nanoseconds() - begin) * 1e-9;
    busy.store(false, std::memory_order_release);
  });
}

std::string CheckpointWriter::finish() {
  if (thread.joinable())
    thread.join();
  return std::exchange(problem, "");
}

std::string CheckpointWriter::write(Manifest manifest,
                                    const std::vector<StagedTensor> &tensors) {
  bool isFirst = ranks->getRank() == 0;
  std::string part = folder + "/" + checkpointName(manifest.step) + ".part";
  std::string failure;
  for (const StagedTensor &tensor : tensors)
    if (failure.empty() && !keepsNotFinite && tensor.description.kind.empty() &&
        !areFinite(tensor.variable->type, tensor.values))
      failure = "'" + tensor.description.name + "' is not finite";

  // 1. A folder, of rank 0.
  if (isFirst && failure.empty()) {
    manifest.program = checksumOfProgram();
    removeFolder(part);
    if (mkdir(part.c_str(), 0777) != 0)
      failure =
          format("cannot create '%s': %s", part.c_str(), std::strerror(errno));
  }
  if (!ranks->begin(failure.empty()) && !isFirst)
    return "";
  if (isFirst && !failure.empty())
    return failure;

  // 2. The files of all. What went wrong anywhere, rank 0 says.
  std::vector<ManifestFile> files;
  if (failure.empty())
    failure = writeRankFiles(part, ranks->getRank(), tensors, files);
  ranks->gather(failure, files);
  if (!isFirst)
    return "";

  // 3. A checkpoint.
  uint64_t bytes = 0;
  for (const ManifestFile &file : files)
    bytes += file.bytes;
  if (failure.empty())
    failure = finishCheckpoint(folder, std::move(manifest), std::move(files));
  if (!failure.empty()) {
    // Room for the next one.
    removeFolder(part);
    return failure;
  }
  ++statistics.count;
  statistics.bytes += bytes;
  removeOldest(folder, keep);
  return "";
}
