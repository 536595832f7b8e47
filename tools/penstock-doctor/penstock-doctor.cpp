//===- penstock-doctor.cpp - Who stopped first ----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the flight records of the processes of a run and says what each device
// did last, who waits for whom, and where the chain of waits begins. Needs
// neither the compiler nor the program.
//===----------------------------------------------------------------------===//

#include "penstock/flag_texts.h"
#include "penstock/flight.h"
#include "penstock/one_line.h"
#include "penstock/severity.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace penstock::runtime;

namespace {

constexpr size_t kShown = 8;

struct Task {
  char letter = '?';
  unsigned stage = 0;
  std::string name;
};

/// A channel, or a group of devices that add up.
struct Endpoint {
  std::string name;
  std::vector<int64_t> devices; // sender and receiver, or all
  bool isGroup = false;
};

struct Device {
  uint32_t number = 0;
  int rank = 0;
  std::vector<FlightEntry> entries; // the oldest first
  // What follows from them.
  const FlightEntry *task = nullptr, *wait = nullptr;
  bool isFinished = false, isBegun = false;

  int64_t getLastTime() const {
    return entries.empty() ? 0 : entries.back().time;
  }
};

struct Process {
  FlightHeader *header = nullptr; // within the text
  std::string text;
};

struct Run {
  std::map<int, Process> processes; // by rank
  std::map<uint32_t, Device> devices;
  std::vector<Task> tasks;
  std::vector<Endpoint> endpoints;
  int size = 0;
};

[[noreturn]] void fail(const std::string &text) {
  std::fprintf(stderr, "%s%s\n",
               penstock::getSeverityText(penstock::Severity::Error),
               penstock::toOneLine(text).c_str());
  std::exit(1);
}

void readNames(std::string_view text, Run &run) {
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind >> std::ws;
    if (kind == "task") {
      Task task;
      words >> task.letter >> task.stage >> std::ws;
      std::getline(words, task.name);
      run.tasks.push_back(task);
      continue;
    }
    Endpoint endpoint;
    endpoint.isGroup = kind == "group";
    if (endpoint.isGroup) {
      std::string list, number;
      words >> list;
      for (std::istringstream numbers(list);
           std::getline(numbers, number, ',');)
        endpoint.devices.push_back(std::strtoll(number.c_str(), nullptr, 10));
    } else {
      endpoint.devices.resize(2);
      words >> endpoint.devices[0] >> endpoint.devices[1];
    }
    words >> std::ws;
    std::getline(words, endpoint.name);
    run.endpoints.push_back(endpoint);
  }
}

void readRing(const FlightRing &ring, int rank, Run &run) {
  Device &device = run.devices[ring.device];
  device.number = ring.device;
  device.rank = rank;
  uint64_t count = ring.count.load();
  uint64_t first = count > kFlightEntries ? count - kFlightEntries : 0;
  for (uint64_t i = first; i < count; ++i)
    device.entries.push_back(ring.entries[i % kFlightEntries]);
  // The entry of its segment may be among those that others have replaced.
  device.isBegun = first > 0;
  for (const FlightEntry &entry : device.entries)
    switch (entry.kind) {
    case FlightKind::Segment:
      device.task = device.wait = nullptr;
      device.isFinished = false;
      device.isBegun = true;
      break;
    case FlightKind::Mark:
      device.task = &entry;
      break;
    case FlightKind::Wait:
      device.wait = &entry;
      break;
    case FlightKind::Done:
      device.wait = nullptr;
      break;
    case FlightKind::End:
      device.isFinished = true;
      break;
    case FlightKind::Post:
      break;
    }
}

void readFile(const std::string &path, Run &run) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  auto isCut = [&](uint64_t at, uint64_t bytes) {
    return at > text.size() || bytes > text.size() - at;
  };
  if (text.size() < sizeof(FlightHeader) ||
      std::memcmp(text.data(), kFlightMagic, sizeof(kFlightMagic)) != 0)
    fail("'" + path + "' is no flight record, or was not complete");
  auto *header = reinterpret_cast<FlightHeader *>(text.data());
  if (header->version != kFlightVersion ||
      header->header_bytes != sizeof(FlightHeader))
    fail("'" + path + "' is a flight record of another version");
  if (isCut(header->names_offset, header->names_bytes) ||
      header->device_count > (1u << 20) ||
      isCut(header->rings_offset,
            uint64_t(header->device_count) * sizeof(FlightRing)) ||
      header->rings_offset % alignof(FlightRing) != 0 || header->rank < 0 ||
      header->rank >= header->size)
    fail("'" + path + "' is cut");
  header->host[sizeof(header->host) - 1] = 0;
  if (!run.processes.empty() &&
      std::memcmp(run.processes.begin()->second.header->run, header->run,
                  sizeof(header->run)) != 0)
    fail("'" + path + "' is of another run than the others in its folder");
  if (run.processes.count(header->rank))
    fail("two records are of rank " + std::to_string(header->rank));
  if (run.processes.empty())
    readNames({text.data() + header->names_offset, header->names_bytes}, run);
  run.size = header->size;
  Process &process = run.processes[header->rank];
  process.text = std::move(text);
  process.header = reinterpret_cast<FlightHeader *>(process.text.data());
  auto *rings = reinterpret_cast<const FlightRing *>(
      process.text.data() + process.header->rings_offset);
  for (uint32_t i = 0; i < process.header->device_count; ++i)
    readRing(rings[i], process.header->rank, run);
}

/// "12:03:11.204", by the clock of rank 0 where that is known.
std::string getTime(const Run &run, int rank, int64_t time) {
  const FlightHeader &header = *run.processes.at(rank).header;
  const FlightHeader &first = *run.processes.begin()->second.header;
  int64_t wall = first.rank == 0 ? first.epoch + time + header.offset
                                 : header.epoch + time;
  time_t seconds = wall / 1000000000;
  tm parts = {};
  localtime_r(&seconds, &parts);
  char text[64];
  std::snprintf(text, sizeof(text), "%02d:%02d:%02d.%03d", parts.tm_hour,
                parts.tm_min, parts.tm_sec, int(wall / 1000000 % 1000));
  return text;
}

std::string describeTask(const Run &run, const FlightEntry &entry) {
  if (entry.id >= run.tasks.size())
    return "an unknown task";
  const Task &task = run.tasks[entry.id];
  return task.letter + std::to_string(entry.number) + " of stage " +
         std::to_string(task.stage);
}

std::string describeEndpoint(const Run &run, const FlightEntry &entry) {
  if (entry.id >= run.endpoints.size())
    return "an unknown message";
  const Endpoint &endpoint = run.endpoints[entry.id];
  return (endpoint.isGroup ? "sum " : "message ") +
         std::to_string(entry.number) +
         (endpoint.isGroup ? " of group '" : " of channel '") + endpoint.name +
         "'";
}

std::string describeEntry(const Run &run, const FlightEntry &entry) {
  switch (entry.kind) {
  case FlightKind::Segment:
    return "a segment begins at update " + std::to_string(entry.number);
  case FlightKind::Mark:
    return describeTask(run, entry);
  case FlightKind::Post:
    return "posts " + describeEndpoint(run, entry);
  case FlightKind::Wait:
    return "waits for " + describeEndpoint(run, entry);
  case FlightKind::Done:
    return "has " + describeEndpoint(run, entry);
  case FlightKind::End:
    return "the segment ends";
  }
  return "?";
}

/// The devices that one waits for: the other end, or those that have not come
/// to the sum.
std::vector<uint32_t> follow(const Run &run, const Device &device) {
  std::vector<uint32_t> result;
  if (!device.wait || device.wait->id >= run.endpoints.size())
    return result;
  const Endpoint &endpoint = run.endpoints[device.wait->id];
  for (int64_t other : endpoint.devices) {
    auto found = run.devices.find(uint32_t(other));
    if (other < 0 || uint32_t(other) == device.number ||
        found == run.devices.end())
      continue;
    const FlightEntry *wait = found->second.wait;
    if (endpoint.isGroup && wait && wait->id == device.wait->id)
      continue;
    result.push_back(uint32_t(other));
  }
  return result;
}

/// The devices that wait for one, by however many others.
std::set<uint32_t> findWaiting(const Run &run, uint32_t first) {
  std::set<uint32_t> waiting = {first};
  for (bool hasGrown = true; hasGrown;) {
    hasGrown = false;
    for (const auto &[number, device] : run.devices)
      for (uint32_t other : follow(run, device))
        if (waiting.count(other) && waiting.insert(number).second)
          hasGrown = true;
  }
  waiting.erase(first);
  return waiting;
}

FlightEnd getEnd(const Run &run, int rank) {
  return run.processes.at(rank).header->end.load();
}

/// The rank that others missed first, or -1.
int findLost(const Run &run) {
  int lost = -1;
  int64_t first = 0;
  for (const auto &[rank, process] : run.processes) {
    int found = process.header->lost.load() - 1;
    int64_t time = process.header->lost_at.load() + process.header->offset;
    if (found >= 0 && (lost < 0 || time < first)) {
      lost = found;
      first = time;
    }
  }
  return lost;
}

/// The process in which the chain begins: one that failed itself; one that
/// others missed; one that ended without a word where others knew why they did;
/// else the one that did something last the earliest.
int findRank(const Run &run) {
  std::map<int, int64_t> lastTimes;
  for (const auto &[number, device] : run.devices) {
    int64_t time = device.getLastTime();
    if (!device.entries.empty())
      time += run.processes.at(device.rank).header->offset;
    auto [last, isNew] = lastTimes.try_emplace(device.rank, time);
    last->second = std::max(last->second, time);
  }
  bool isAnyMarked = false;
  for (const auto &[rank, process] : run.processes)
    isAnyMarked |= getEnd(run, rank) != FlightEnd::None;
  auto getClass = [&, lost = findLost(run)](int rank) {
    FlightEnd end = getEnd(run, rank);
    return end == FlightEnd::Origin                ? 0
           : rank == lost                          ? 1
           : end == FlightEnd::None && isAnyMarked ? 2
                                                   : 3;
  };
  int found = -1;
  for (auto [rank, time] : lastTimes)
    if (found < 0 || getClass(rank) < getClass(found) ||
        (getClass(rank) == getClass(found) && time < lastTimes[found]))
      found = rank;
  return found;
}

/// The first link of the chain, or null if there is no device at all. A device
/// that works says more than one that waits.
const Device *findFirst(const Run &run) {
  int rank = findRank(run);
  const Device *first = nullptr;
  for (const auto &[number, device] : run.devices) {
    auto works = [](const Device &one) { return !one.wait && !one.isFinished; };
    if (device.rank == rank && (!first || (works(device) && !works(*first)) ||
                                (works(device) == works(*first) &&
                                 device.getLastTime() < first->getLastTime())))
      first = &device;
  }
  return first;
}

std::string listDevices(const std::set<uint32_t> &devices) {
  std::string text = devices.size() == 1 ? "device " : "devices ";
  const char *comma = "";
  for (uint32_t device : devices) {
    text += comma + std::to_string(device);
    comma = ", ";
  }
  return text;
}

/// Returns the host of a rank between two texts, or nothing if it has no name.
std::string getHost(const Run &run, int rank, const char *before,
                    const char *after) {
  std::string host = run.processes.at(rank).header->host;
  return host.empty() ? "" : before + host + after;
}

std::string nameDevice(const Run &run, const Device &device) {
  return "device " + std::to_string(device.number) + " (rank " +
         std::to_string(device.rank) + getHost(run, device.rank, ", ", "") +
         ")";
}

/// Returns true if all processes ended together.
bool haveAllAgreed(const Run &run) {
  return int(run.processes.size()) == run.size &&
         std::all_of(run.processes.begin(), run.processes.end(),
                     [&](const auto &one) {
                       return getEnd(run, one.first) == FlightEnd::Agreed;
                     });
}

/// The device that did something last; there is one.
const Device *findLast(const Run &run) {
  auto getRootTime = [&](const Device &device) {
    return device.getLastTime() + run.processes.at(device.rank).header->offset;
  };
  const Device *last = nullptr;
  for (const auto &[number, device] : run.devices)
    if (!last || getRootTime(device) > getRootTime(*last))
      last = &device;
  return last;
}

std::string summarize(const Run &run, const Device &first) {
  if (haveAllAgreed(run)) {
    const Device *last = findLast(run);
    return "no device stopped first: all processes ended together; the last "
           "action was at " +
           getTime(run, last->rank, last->getLastTime());
  }
  std::string text = nameDevice(run, first) + " stopped ";
  if (first.wait)
    text += "while it waited for " + describeEndpoint(run, *first.wait);
  else if (!first.isBegun)
    text += "before its first segment";
  else if (first.isFinished)
    text += "after a segment";
  else
    text += first.task ? "in " + describeTask(run, *first.task)
                       : "before its first action";
  text += " at " + getTime(run, first.rank, first.getLastTime());
  std::set<uint32_t> waiting = findWaiting(run, first.number);
  if (!waiting.empty())
    text += "; " + listDevices(waiting) +
            (waiting.size() == 1 ? " waits for it" : " wait for it");
  return text;
}

const char *describeEnd(FlightEnd end) {
  switch (end) {
  case FlightEnd::None:
    return "no end mark: it was killed or stopped, or still runs";
  case FlightEnd::Origin:
    return "failed, or stood still";
  case FlightEnd::Agreed:
    return "ended with the others, for a reason that all knew";
  case FlightEnd::Failed:
    break;
  }
  return "ended when it learned that all do";
}

void printText(const Run &run, const Device *first) {
  for (int rank = 0; rank < run.size; ++rank) {
    if (!run.processes.count(rank)) {
      std::printf("rank %d: no record here\n", rank);
      continue;
    }
    std::printf("rank %d%s: %s\n", rank, getHost(run, rank, " (", ")").c_str(),
                describeEnd(getEnd(run, rank)));
    for (const auto &[number, device] : run.devices) {
      if (device.rank != rank)
        continue;
      std::printf("  device %u:\n", number);
      size_t begin =
          device.entries.size() - std::min(device.entries.size(), kShown);
      for (size_t i = begin; i < device.entries.size(); ++i)
        std::printf("    %s %s\n",
                    getTime(run, rank, device.entries[i].time).c_str(),
                    describeEntry(run, device.entries[i]).c_str());
    }
  }
  if (first)
    std::printf("%s\n", summarize(run, *first).c_str());
}

std::string quote(const std::string &text) {
  std::string result = "\"";
  for (char c : penstock::toOneLine(text)) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

void printJson(const Run &run, const Device *first) {
  std::printf("{\"ranks\": [");
  for (int rank = 0; rank < run.size; ++rank)
    std::printf(
        "%s{\"rank\": %d, \"has_record\": %s, \"has_end_mark\": %s}",
        rank ? ", " : "", rank, run.processes.count(rank) ? "true" : "false",
        run.processes.count(rank) && getEnd(run, rank) != FlightEnd::None
            ? "true"
            : "false");
  std::printf("]");
  if (first) {
    std::printf(", \"device\": %u, \"rank\": %d, \"waits\": %s", first->number,
                first->rank, first->wait ? "true" : "false");
    std::printf(", \"waiting\": [");
    const char *comma = "";
    for (uint32_t device : findWaiting(run, first->number)) {
      std::printf("%s%u", comma, device);
      comma = ", ";
    }
    std::printf("], \"sentence\": %s", quote(summarize(run, *first)).c_str());
  }
  std::printf("}\n");
}

/// Returns what a flag asks to be told about the tool, if it is such a flag.
std::optional<std::string> describeTool(std::string_view flag) {
  penstock::FlagPage page = {
      "penstock-doctor",
      PENSTOCK_VERSION,
      "says from the flight records of a run, rank-*.flight in a folder, what "
      "each device did last, and where the chain of waits begins",
      "FOLDER [--json]",
      "0: done. 1: a mistake in the command, or no records that can be read.",
      {{"Options", {{"json", "Print JSON", ""}}}, penstock::getHelpFlags()}};
  constexpr std::string_view kCompletion = "--completion=";
  if (flag == "--help")
    return penstock::describeFlags(page);
  if (flag == "--man")
    return penstock::makeManPage(page);
  if (flag == "--version")
    return "penstock " PENSTOCK_VERSION "\n";
  if (!flag.starts_with(kCompletion))
    return std::nullopt;
  flag.remove_prefix(kCompletion.size());
  std::string text = penstock::makeCompletion(page, flag);
  if (text.empty())
    fail("--completion=" + std::string(flag) +
         ": the shells are bash, zsh, fish");
  return text;
}

} // namespace

int main(int argc, char **argv) {
  bool isJson = false;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--json") {
      isJson = true;
    } else if (std::optional<std::string> text = describeTool(argument)) {
      std::fputs(text->c_str(), stdout);
      return std::fflush(stdout) == 0 && !std::ferror(stdout) ? 0 : 1;
    } else if (argument.rfind("--", 0) == 0 || !folder.empty()) {
      fail("unexpected argument '" + argument + "' (see --help)");
    } else {
      folder = argument;
    }
  }
  if (folder.empty())
    fail("name the folder of a flight record (see --help)");
  std::vector<std::string> paths;
  std::error_code status;
  for (const auto &entry : std::filesystem::directory_iterator(folder, status))
    if (entry.path().extension() == ".flight")
      paths.push_back(entry.path().string());
  if (status)
    fail("cannot read '" + folder + "': " + status.message());
  if (paths.empty())
    fail("'" + folder + "' holds no flight record");
  std::sort(paths.begin(), paths.end());
  Run run;
  for (const std::string &path : paths)
    readFile(path, run);
  const Device *first = findFirst(run);
  if (isJson)
    printJson(run, first);
  else
    printText(run, first);
  return std::fflush(stdout) == 0 && !std::ferror(stdout) ? 0 : 1;
}
