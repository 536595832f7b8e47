//===- File.cpp - Mapped input, output under a temporary name -------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain POSIX calls: every failure carries the path and the system's reason.
//===----------------------------------------------------------------------===//

#include "runtime/io/File.h"
#include "penstock/one_line.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

using namespace penstock::runtime;

// A signal handler may take no lock and allocate nothing: it walks a list whose
// entries are never freed, only used again.

namespace {

struct Mapping {
  std::atomic<uintptr_t> begin = 0; // 0: free
  uint64_t bytes = 0;
  std::string line; // for the error
  Mapping *next = nullptr;
};

constinit std::atomic<Mapping *> first = nullptr;
constinit std::mutex changes;
constinit struct sigaction before = {};

void onBusError(int signal, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Mapping *each = first.load(); each; each = each->next) {
    uintptr_t begin = each->begin.load();
    if (begin == 0 || address < begin || address - begin >= each->bytes)
      continue;
    ssize_t written =
        ::write(STDERR_FILENO, each->line.data(), each->line.size());
    (void)written;
    ::_exit(PENSTOCK_USER_ERROR);
  }
  // The access is made again, and the handler before this one gets it; a signal
  // that somebody sent has to be sent again.
  sigaction(signal, &before, nullptr);
  if (info->si_code <= 0)
    std::raise(signal);
}

} // namespace

/// Watches the bytes of a mapped file until forgetMapping(). Any thread may
/// call it. A SIGBUS elsewhere goes to whoever handled it before.
static void watchMapping(const void *begin, uint64_t bytes,
                         const std::string &path) {
  std::lock_guard<std::mutex> lock(changes);
  if (!first.load()) {
    struct sigaction action = {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &before);
  }
  Mapping *entry = first.load();
  while (entry && entry->begin.load())
    entry = entry->next;
  bool isNew = !entry;
  if (isNew)
    entry = new Mapping;
  entry->bytes = bytes;
  entry->line = "error: '" + penstock::toOneLine(path) +
                "' became shorter, or could not be read, while it was in use\n";
  entry->begin.store(reinterpret_cast<uintptr_t>(begin));
  if (isNew) {
    entry->next = first.load();
    first.store(entry);
  }
}

/// Ends the watch of the mapping that begins there.
static void forgetMapping(const void *begin) {
  std::lock_guard<std::mutex> lock(changes);
  for (Mapping *each = first.load(); each; each = each->next)
    if (each->begin.load() == reinterpret_cast<uintptr_t>(begin))
      each->begin.store(0);
}

MappedFile::MappedFile(MappedFile &&other)
    : name(std::move(other.name)), bytes(std::exchange(other.bytes, nullptr)),
      length(std::exchange(other.length, 0)),
      large(std::exchange(other.large, -1)), begin(other.begin),
      around(other.around) {}

MappedFile &MappedFile::operator=(MappedFile &&other) {
  std::swap(name, other.name);
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  std::swap(large, other.large);
  std::swap(begin, other.begin);
  std::swap(around, other.around);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes || !length)
    return;
  forgetMapping(bytes);
  munmap(const_cast<char *>(bytes), length);
  if (large >= 0)
    ::close(large);
}

/// Files of at most so many bytes are read when they are opened.
static constexpr uint64_t kReadAtOnce = 256 << 20;

bool MappedFile::isLarge() const { return length > kReadAtOnce; }

void MappedFile::setRandom(bool stays) {
  if (!isLarge())
    return;
  constexpr uint64_t kBlock = 256 << 10;
  around = stays ? kBlock : 0;
  madvise(const_cast<char *>(bytes), length, MADV_RANDOM);
}

bool MappedFile::prefetch(const char *data, uint64_t size) const {
  if (!isLarge())
    return true;
  // Asking for a page that is there costs more than to find that out. Pages at
  // the ends may have come with other bytes.
  char byte;
  iovec one = {&byte, 1};
  uint64_t middle = uint64_t(data - bytes) + size / 2;
  if (large >= 0 &&
      preadv2(large, &one, 1, off_t(begin + middle), RWF_NOWAIT) == 1)
    return true;
  static const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t unit = std::max(around, page), first = uint64_t(data - bytes),
           end = first + size;
  first -= first % unit;
  end = std::min(length, (end + unit - 1) / unit * unit);
  madvise(const_cast<char *>(bytes + first), end - first, MADV_WILLNEED);
  return false;
}

void MappedFile::giveBackPages() const {
  if (bytes)
    madvise(const_cast<char *>(bytes), length, MADV_DONTNEED);
}

Error MappedFile::open(const std::string &path, const char *what) {
  return openRange(path, what, 0, UINT64_MAX);
}

Error MappedFile::openRange(const std::string &path, const char *what,
                            uint64_t offset, uint64_t size) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return userError("%s: cannot open '%s': %s", what, path.c_str(),
                     std::strerror(errno));
  Error error = map(descriptor, path, what, offset, size);
  ::close(descriptor);
  return error;
}

Error MappedFile::openUnlinked(const std::string &path, const char *what) {
  // Not even a pipe can make this wait.
  int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0)
    return userError("%s: cannot open '%s': %s", what, path.c_str(),
                     errno == ELOOP ? "it is a symbolic link"
                                    : std::strerror(errno));
  Error error = map(descriptor, path, what, 0, UINT64_MAX);
  ::close(descriptor);
  return error;
}

Error MappedFile::map(int descriptor, const std::string &path, const char *what,
                      uint64_t offset, uint64_t size) {
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return userError("%s: '%s' is not a regular file", what, path.c_str());
  if (info.st_size == 0)
    return userError("%s: '%s' is empty", what, path.c_str());
  if (offset >= uint64_t(info.st_size))
    return userError("%s: '%s' is truncated", what, path.c_str());
  uint64_t most = uint64_t(info.st_size) - offset;
  if (size != UINT64_MAX && size > most)
    return userError("%s: '%s' is truncated", what, path.c_str());
  size = std::min(size, most);
  void *mapped =
      mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, off_t(offset));
  if (mapped == MAP_FAILED)
    return userError("%s: cannot map '%s': %s", what, path.c_str(),
                     std::strerror(errno));
  // Read ahead in the background, so that device threads seldom fault. Larger
  // files may not even fit into memory.
  if (size <= kReadAtOnce)
    madvise(mapped, size, MADV_WILLNEED);
  name = path;
  bytes = static_cast<const char *>(mapped);
  length = size;
  begin = offset;
  if (isLarge())
    large = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  watchMapping(mapped, length, path);
  return {};
}

std::string penstock::runtime::executablePath() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0 && size_t(length) < sizeof(path))
    return std::string(path, length);
  // Where there is no /proc.
  auto called = reinterpret_cast<const char *>(getauxval(AT_EXECFN));
  return called ? called : "";
}

OutputFile::OutputFile(OutputFile &&other)
    : target(std::move(other.target)), file(std::move(other.file)),
      isSpecial(other.isSpecial), special(std::exchange(other.special, -1)) {}

OutputFile::~OutputFile() {
  if (special >= 0)
    ::close(special);
}

Error OutputFile::failed(const char *action) {
  return userError("cannot %s '%s': %s", action, target.c_str(),
                   std::strerror(errno));
}

Error OutputFile::create(const std::string &path) {
  target = path;
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
      !S_ISDIR(info.st_mode)) {
    // A device or a pipe is written to, not replaced.
    isSpecial = true;
    special = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return special < 0 ? failed("open") : Error();
  }
  return file.create(path, O_WRONLY) ? Error() : failed("create");
}

/// Reads of every page of what the kernel could not read: a mapped file that
/// became shorter ends the process with a line that names it.
static void readPages(const char *bytes, uint64_t size) {
  if (errno != EFAULT)
    return;
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t at = 0; at < size; at += page)
    (void)*static_cast<const volatile char *>(bytes + at);
  (void)*static_cast<const volatile char *>(bytes + size - 1);
  errno = EFAULT;
}

Error OutputFile::append(const void *data, uint64_t size) {
  const char *bytes = static_cast<const char *>(data);
  while (size) {
    ssize_t done = write(getDescriptor(), bytes, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      readPages(bytes, size);
    if (done <= 0)
      return failed("write");
    bytes += done;
    size -= done;
  }
  return {};
}

Error OutputFile::overwrite(uint64_t offset, const void *data, uint64_t size) {
  const char *bytes = static_cast<const char *>(data);
  while (size) {
    ssize_t done = pwrite(getDescriptor(), bytes, size, offset);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      readPages(bytes, size);
    if (done <= 0)
      return failed("write");
    bytes += done;
    offset += done;
    size -= done;
  }
  return {};
}

Error OutputFile::close() {
  if (getDescriptor() < 0)
    return {};
  bool isWritten =
      isSpecial ? ::close(std::exchange(special, -1)) == 0 : file.close();
  return isWritten ? Error() : failed("write");
}

Error OutputFile::commit() {
  if (Error error = close())
    return error;
  return isSpecial || file.rename(target) ? Error() : failed("rename to");
}

std::string penstock::runtime::folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error penstock::runtime::checkWritable(const std::string &path,
                                       const char *flag) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return userError("%s: '%s' is a folder", flag, path.c_str());
  std::string folder = folderOf(path);
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return userError("%s: folder '%s' does not exist", flag, folder.c_str());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return userError("%s: cannot write into folder '%s': %s", flag,
                     folder.c_str(), std::strerror(errno));
  return {};
}

bool penstock::runtime::sameFile(const std::string &first,
                                 const std::string &second) {
  struct stat a, b;
  return stat(first.c_str(), &a) == 0 && stat(second.c_str(), &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool penstock::runtime::wouldReplace(const std::string &path,
                                     const std::string &other) {
  if (path.empty() || other.empty())
    return false;
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    return S_ISREG(info.st_mode) && sameFile(path, other);
  // Neither is there yet: the same name in the same folder.
  auto nameOf = [](const std::string &name) {
    return name.substr(name.rfind('/') + 1);
  };
  return nameOf(path) == nameOf(other) &&
         sameFile(folderOf(path), folderOf(other));
}
