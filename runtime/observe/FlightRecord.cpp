//===- FlightRecord.cpp - What devices did last ---------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pages are of the file: the kernel keeps them when the process is gone.
//===----------------------------------------------------------------------===//

#include "runtime/observe/FlightRecord.h"

#include "penstock/one_line.h"
#include "runtime/support/Wait.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime;

FlightRecord::~FlightRecord() {
  if (header)
    munmap(header, bytes);
  if (lock >= 0)
    close(lock);
}

static std::string listNames(const penstock_program &program) {
  std::string names;
  for (uint32_t i = 0; i < program.task_count; ++i)
    names += format("task %c %u %s\n", char(program.tasks[i].letter),
                    program.tasks[i].stage,
                    penstock::toOneLine(program.tasks[i].name).c_str());
  for (uint32_t i = 0; i < program.channel_count; ++i)
    names += format("channel %d %d %s\n", program.channels[i].sender,
                    program.channels[i].receiver,
                    penstock::toOneLine(program.channels[i].name).c_str());
  for (uint32_t i = 0; i < program.group_count; ++i) {
    const penstock_group &group = program.groups[i];
    names += "group ";
    for (uint32_t k = 0; k < group.summand_count; ++k)
      names += format(k ? ",%u" : "%u", group.devices[k]);
    names += " " + penstock::toOneLine(group.name) + "\n";
  }
  return names;
}

Error FlightRecord::open(const std::string &where,
                         const penstock_program &program, const Job &job,
                         const Token &run, const ClockOffset &clock) {
  folder = where;
  path = format("%s/rank-%d.flight", folder.c_str(), job.rank);
  auto failed = [&] {
    return userError("--flight-record: cannot create '%s': %s", path.c_str(),
                     std::strerror(errno));
  };
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return failed();

  // 1. The file, with room for all.
  std::string names = listNames(program);
  uint32_t devices = 0;
  for (uint32_t device = 0; device < program.device_count; ++device)
    devices += job.has(device);
  constexpr uint64_t kPage = 4096;
  uint64_t rings =
      (sizeof(FlightHeader) + names.size() + kPage - 1) / kPage * kPage;
  bytes = rings + devices * sizeof(FlightRing);
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    return failed();
  errno = posix_fallocate(file, 0, off_t(bytes));
  void *mapped =
      errno ? MAP_FAILED
            : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  int reason = errno;
  (void)flock(file, LOCK_SH | LOCK_NB);
  lock = file;
  if (mapped == MAP_FAILED) {
    errno = reason;
    return failed();
  }

  // 2. What it begins with.
  header = new (mapped) FlightHeader();
  header->version = kFlightVersion;
  header->header_bytes = sizeof(FlightHeader);
  std::memcpy(header->run, run.data(), run.size());
  header->rank = job.rank;
  header->size = job.size;
  header->device_count = devices;
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  header->epoch =
      int64_t(wall.tv_sec) * 1000000000 + wall.tv_nsec - nanoseconds();
  header->offset = clock.offset;
  header->offset_error = clock.error;
  header->names_offset = sizeof(FlightHeader);
  header->names_bytes = names.size();
  header->rings_offset = rings;
  std::strncpy(header->host, job.hosts[job.rank].c_str(),
               sizeof(header->host) - 1);
  std::memcpy(static_cast<char *>(mapped) + sizeof(FlightHeader), names.data(),
              names.size());
  auto *ring =
      reinterpret_cast<FlightRing *>(static_cast<char *>(mapped) + rings);
  for (uint32_t device = 0; device < program.device_count; ++device)
    if (job.has(device))
      (ring++)->device = device;
  // What has this is complete.
  std::memcpy(header->magic, kFlightMagic, sizeof(kFlightMagic));
  return {};
}

FlightRing *FlightRecord::find(uint32_t device) {
  if (!header)
    return nullptr;
  auto *ring = reinterpret_cast<FlightRing *>(reinterpret_cast<char *>(header) +
                                              header->rings_offset);
  for (uint32_t i = 0; i < header->device_count; ++i, ++ring)
    if (ring->device == device)
      return ring;
  return nullptr;
}

void FlightRecord::setEnd(FlightEnd end) {
  FlightEnd none = FlightEnd::None;
  if (header)
    header->end.compare_exchange_strong(none, end);
}

void FlightRecord::setLost(int rank) {
  if (!header || header->lost.load())
    return;
  header->lost_at.store(nanoseconds());
  header->lost.store(rank + 1);
}

void FlightRecord::remove() {
  if (!header)
    return;
  unlink(path.c_str());
  rmdir(folder.c_str());
}

//===----------------------------------------------------------------------===//
// Records of other runs
//===----------------------------------------------------------------------===//

static constexpr char kPrefix[] = "penstock-flight-";

static std::string getTemporaryFolder() {
  const char *temporary = std::getenv("TMPDIR");
  return temporary && *temporary ? temporary : "/tmp";
}

std::string penstock::runtime::getRecordFolder(const std::string &name) {
  return getTemporaryFolder() + "/" + kPrefix + name;
}

/// Returns true if a process that writes the file lives.
static bool isWritten(const std::string &path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0)
    return true; // It is none of ours.
  bool isFree = flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return !isFree;
}

void penstock::runtime::removeOldRecords(const std::string &own) {
  constexpr size_t kKept = 8;
  namespace fs = std::filesystem;
  std::error_code status;
  std::vector<std::pair<time_t, std::string>> folders;
  for (fs::directory_iterator at(getTemporaryFolder(), status), end;
       !status && at != end; at.increment(status)) {
    struct stat info;
    if (at->path().filename().string().starts_with(kPrefix) &&
        at->path() != own && lstat(at->path().c_str(), &info) == 0 &&
        S_ISDIR(info.st_mode) && info.st_uid == geteuid())
      folders.emplace_back(info.st_mtime, at->path().string());
  }
  std::sort(folders.rbegin(), folders.rend());
  for (size_t i = kKept; i < folders.size(); ++i) {
    std::vector<std::string> files;
    for (fs::directory_iterator at(folders[i].second, status), end;
         !status && at != end; at.increment(status))
      files.push_back(at->path().string());
    if (std::any_of(files.begin(), files.end(), isWritten))
      continue;
    for (const std::string &file : files)
      if (file.ends_with(".flight"))
        unlink(file.c_str());
    rmdir(folders[i].second.c_str());
  }
}
