//===- Trace.cpp - The run as a Chrome/Perfetto trace ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the JSON form of the Trace Event Format: metadata events that name the
// rows, then complete events ("X") with times in microseconds, and flow events
// ("s", "f") for messages.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Trace.h"
#include "runtime/observe/JsonText.h"

#include <algorithm>
#include <map>
#include <sys/mman.h>
#include <tuple>

using namespace penstock::runtime;

TraceBuffer::TraceBuffer(const TraceSteps &steps)
    : steps(steps), isSkipping(!steps.isAll()) {
  void *mapped =
      mmap(nullptr, kCapacity * sizeof(Slice), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  slices = mapped == MAP_FAILED ? nullptr : static_cast<Slice *>(mapped);
  if (!slices)
    count = resolved = kCapacity; // Everything is dropped, and said to be.
}

TraceBuffer::~TraceBuffer() {
  if (slices)
    munmap(slices, kCapacity * sizeof(Slice));
}

/// Rows are numbered so that each (stage, device) has its own.
static uint64_t rowOf(const penstock_program &program,
                      const penstock_task &task, uint32_t device) {
  return uint64_t(task.stage) * program.device_count + device;
}

/// The bytes that a wait was for.
static uint64_t bytesOf(const penstock_program &program, uint32_t id) {
  if (id < program.channel_count)
    return program.channels[id].type.bytes;
  const penstock_group &group = program.groups[id - program.channel_count];
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < group.type_count; ++i)
    bytes += group.types[i].bytes;
  return bytes;
}

Error TraceWriter::flush() {
  Error error = file.append(text);
  text.clear();
  return error;
}

Error TraceWriter::open(const std::string &path, int64_t start) {
  origin = start;
  if (Error error = file.create(path))
    return error;
  text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char *comma = "\n";
  for (int rank = 0; rank < job.size; ++rank) {
    std::string name = "penstock";
    if (job.size > 1)
      name = format("rank %d (%s)", rank, job.hosts[rank].c_str());
    text += format("%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                   "\"tid\":0,\"args\":{\"name\":%s}}",
                   comma, rank + 1, jsonString(name.c_str()).c_str());
    comma = ",\n";
  }
  for (uint32_t i = 0; i < program.task_count; ++i)
    nameRow(program.tasks[i], program.tasks[i].device);
  return {};
}

/// The number of a row as a thread. Perfetto takes thread 0 for the main thread
/// of its process, whose number is that of the process; so none is either.
uint64_t TraceWriter::getThread(uint64_t row) const {
  return uint64_t(job.size) + 1 + row;
}

/// The process of a device, as the trace counts them.
int TraceWriter::getProcess(uint32_t device) const {
  return job.rankOfDevice[device] + 1;
}

void TraceWriter::nameRow(const penstock_task &task, uint32_t device) {
  uint64_t row = rowOf(program, task, device);
  if (row >= isNamed.size())
    isNamed.resize(row + 1);
  if (device >= program.device_count || isNamed[row])
    return;
  isNamed[row] = true;
  text += format(",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,"
                 "\"tid\":%llu,\"args\":{\"name\":\"stage %u (device %u)\"}}"
                 ",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,"
                 "\"tid\":%llu,\"args\":{\"sort_index\":%llu}}",
                 getProcess(device), (unsigned long long)getThread(row),
                 task.stage, device, getProcess(device),
                 (unsigned long long)getThread(row), (unsigned long long)row);
}

Error TraceWriter::add(uint32_t device,
                       std::span<const TraceBuffer::Slice> slices) {
  // 1. The rows. A wait stands in the row of the action that it delays; those
  // after the last action stand in its row.
  std::vector<uint64_t> rows(slices.size());
  uint64_t row = 0;
  for (const TraceBuffer::Slice &slice : slices) {
    if (!slice.isAction())
      continue;
    // Further replicas have rows that no task names.
    nameRow(program.tasks[slice.id], device);
    row = rowOf(program, program.tasks[slice.id], device);
  }
  for (uint64_t i = slices.size(); i-- > 0;) {
    if (slices[i].isAction())
      row = rowOf(program, program.tasks[slices[i].id], device);
    rows[i] = row;
  }

  // 2. The slices.
  for (size_t i = 0; i < slices.size(); ++i) {
    keepEnd(slices[i], device, rows[i]);
    if (slices[i].kind == TraceBuffer::Send)
      continue;
    addSlice(slices[i], device, rows[i]);
    if (text.size() > 1 << 20)
      if (Error error = flush())
        return error;
  }
  return {};
}

void TraceWriter::addSlice(const TraceBuffer::Slice &slice, uint32_t device,
                           uint64_t row) {
  long long n = slice.n;
  std::string name, kind, arguments;
  if (slice.isWait() && slice.id >= program.channel_count) {
    const penstock_group &group =
        program.groups[slice.id - program.channel_count];
    name = jsonString(format("sum %s[%lld]", group.name, n).c_str());
    kind = "sum";
    arguments = format("\"update\":%lld,\"bytes\":%llu", n + 1,
                       (unsigned long long)bytesOf(program, slice.id));
  } else if (slice.isWait()) {
    const penstock_channel &channel = program.channels[slice.id];
    n = n * channel.stride + channel.offset;
    name = jsonString(format("wait %s[%lld]", channel.name, n).c_str());
    kind = "wait";
    arguments = format("\"microbatch\":%lld,\"bytes\":%llu", n,
                       (unsigned long long)bytesOf(program, slice.id));
  } else {
    const penstock_task &task = program.tasks[slice.id];
    name = format("\"%c%lld\"", char(task.letter), n);
    kind = "action";
    int64_t update = steps.getUpdate(task.letter, n);
    if (task.letter == 'U') {
      arguments = format("\"update\":%lld,\"version\":%lld",
                         (long long)update + 1, n + 1);
      ends[update] = std::max(ends[update], slice.end);
    } else if (task.letter == 'P' || task.letter == 'S') {
      arguments = format("\"update\":%lld", (long long)update + 1);
    } else if (task.letter == 'E') {
      arguments = format("\"microbatch\":%lld", n);
    } else {
      arguments = format("\"update\":%lld,\"microbatch\":%lld",
                         (long long)update + 1, n);
    }
  }
  int64_t begin = std::max(slice.begin, origin);
  int64_t end = std::max(slice.end, begin);
  text +=
      format(",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,"
             "\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f,"
             "\"args\":{%s}}",
             name.c_str(), kind.c_str(), getProcess(device),
             (unsigned long long)getThread(row), double(begin - origin) * 1e-3,
             double(end - begin) * 1e-3, arguments.c_str());
}

/// Keeps what may become an end of an arrow.
void TraceWriter::keepEnd(const TraceBuffer::Slice &slice, uint32_t device,
                          uint64_t row) {
  if (slice.kind == TraceBuffer::Send)
    sends.push_back({slice.id, slice.n, slice.begin, device,
                     rowOf(program, program.tasks[slice.task], device)});
  // A sender waits, too, until its message has left.
  if (slice.isWait() && slice.id < program.channel_count &&
      program.channels[slice.id].receiver == int32_t(device) &&
      program.channels[slice.id].sender >= 0)
    waits.push_back({slice.id, slice.n, slice.end, device, row});
}

/// Evaluations use the numbers of messages again: a wait is for the last one of
/// its number that had been sent when it ended.
Error TraceWriter::addArrows(const std::vector<int64_t> &clockErrors) {
  auto key = [](const ArrowEnd &end) {
    return std::tuple(end.channel, end.n, end.time);
  };
  std::sort(sends.begin(), sends.end(),
            [&](const ArrowEnd &first, const ArrowEnd &second) {
              return key(first) < key(second);
            });
  auto errorOf = [&](uint32_t device) {
    size_t rank = size_t(job.rankOfDevice[device]);
    return rank < clockErrors.size() ? clockErrors[rank] : 0;
  };
  uint64_t id = 0;
  for (const ArrowEnd &wait : waits) {
    // 1. The message.
    const penstock_channel &channel = program.channels[wait.channel];
    int64_t error = errorOf(wait.device) + errorOf(uint32_t(channel.sender));
    ArrowEnd bound = wait;
    bound.time += error;
    auto after =
        std::upper_bound(sends.begin(), sends.end(), bound,
                         [&](const ArrowEnd &first, const ArrowEnd &second) {
                           return key(first) < key(second);
                         });
    if (after == sends.begin())
      continue;
    const ArrowEnd &send = after[-1];
    if (send.channel != wait.channel || send.n != wait.n)
      continue;

    // 2. The arrow, from inside the slice of the sender, at whose end it may
    // be, to the slice that comes next.
    std::string name =
        jsonString(format("%s[%lld]", channel.name,
                          (long long)wait.n * channel.stride + channel.offset)
                       .c_str());
    ++id;
    auto addEnd = [&](const char *phase, const ArrowEnd &end, int64_t time) {
      text += format(
          ",\n{\"name\":%s,\"cat\":\"message\",\"ph\":\"%s\",\"id\":%llu,"
          "\"pid\":%d,\"tid\":%llu,\"ts\":%.3f}",
          name.c_str(), phase, (unsigned long long)id, getProcess(end.device),
          (unsigned long long)getThread(end.row), double(time - origin) * 1e-3);
    };
    addEnd("s", send, send.time - 1);
    addEnd("f", wait, wait.time);
    if (text.size() > 1 << 20)
      if (Error failure = flush())
        return failure;
  }
  return {};
}

Error TraceWriter::close(const std::vector<int64_t> &clockErrors) {
  for (auto [n, end] : ends)
    text +=
        format(",\n{\"name\":\"update %lld\",\"cat\":\"update\",\"ph\":\"i\","
               "\"s\":\"%s\",\"pid\":1,\"tid\":0,\"ts\":%.3f}",
               (long long)n + 1, job.size > 1 ? "g" : "p",
               double(end - origin) * 1e-3);
  if (Error error = addArrows(clockErrors))
    return error;
  text += "\n]";
  for (size_t rank = 0; job.size > 1 && rank < clockErrors.size(); ++rank)
    text += format(
        "%s%.3f", rank ? "," : ",\"otherData\":{\"clock_error_microseconds\":[",
        double(clockErrors[rank]) * 1e-3);
  text += job.size > 1 ? "]}}\n" : "}\n";
  if (Error error = flush())
    return error;
  return file.commit();
}
