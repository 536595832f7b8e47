//===- Trace.cpp - The run as a Chrome/Perfetto trace ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the JSON form of the Trace Event Format: metadata events that name the
// rows, then complete events ("X") with times in microseconds.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Trace.h"
#include "runtime/observe/JsonText.h"

#include <algorithm>
#include <map>
#include <sys/mman.h>

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

/// The process of a device, as the trace counts them.
int TraceWriter::processOf(uint32_t device) const {
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
                 processOf(device), (unsigned long long)row, task.stage, device,
                 processOf(device), (unsigned long long)row,
                 (unsigned long long)row);
}

Error TraceWriter::add(uint32_t device,
                       std::span<const TraceBuffer::Slice> slices) {
  // 1. The rows. A wait stands in the row of the action that it delays; those
  // after the last action stand in its row.
  std::vector<uint64_t> rows(slices.size());
  uint64_t row = 0;
  for (const TraceBuffer::Slice &slice : slices) {
    if (slice.isWait)
      continue;
    // Further replicas have rows that no task names.
    nameRow(program.tasks[slice.id], device);
    row = rowOf(program, program.tasks[slice.id], device);
  }
  for (uint64_t i = slices.size(); i-- > 0;) {
    if (!slices[i].isWait)
      row = rowOf(program, program.tasks[slices[i].id], device);
    rows[i] = row;
  }

  // 2. The slices.
  for (size_t i = 0; i < slices.size(); ++i) {
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
  if (slice.isWait && slice.id >= program.channel_count) {
    const penstock_group &group =
        program.groups[slice.id - program.channel_count];
    name = jsonString(format("sum %s[%lld]", group.name, n).c_str());
    kind = "sum";
    arguments = format("\"update\":%lld,\"bytes\":%llu", n + 1,
                       (unsigned long long)bytesOf(program, slice.id));
  } else if (slice.isWait) {
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
    if (task.letter == 'U') {
      arguments = format("\"update\":%lld,\"version\":%lld", n + 1, n + 1);
      ends[n] = std::max(ends[n], slice.end);
    } else if (task.letter == 'E') {
      arguments = format("\"microbatch\":%lld", n);
    } else {
      arguments = format("\"update\":%lld,\"microbatch\":%lld",
                         (long long)steps.updateOf(task.letter, n) + 1, n);
    }
  }
  text += format(",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,"
                 "\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f,"
                 "\"args\":{%s}}",
                 name.c_str(), kind.c_str(), processOf(device),
                 (unsigned long long)row, double(slice.begin - origin) * 1e-3,
                 double(slice.end - slice.begin) * 1e-3, arguments.c_str());
}

Error TraceWriter::close(const std::vector<int64_t> &clockErrors) {
  for (auto [n, end] : ends)
    text +=
        format(",\n{\"name\":\"update %lld\",\"cat\":\"update\",\"ph\":\"i\","
               "\"s\":\"%s\",\"pid\":1,\"tid\":0,\"ts\":%.3f}",
               (long long)n + 1, job.size > 1 ? "g" : "p",
               double(end - origin) * 1e-3);
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
