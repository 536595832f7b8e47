//===- Trace.cpp - The run as a Chrome/Perfetto trace ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the JSON form of the Trace Event Format: metadata events that name the
// rows, then complete events ("X") with times in microseconds.
//===----------------------------------------------------------------------===//

#include "runtime/observe/Trace.h"

#include <sys/mman.h>

using namespace penstock::runtime;

TraceBuffer::TraceBuffer() {
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

std::string penstock::runtime::jsonString(const char *text) {
  std::string result = "\"";
  for (; *text; ++text) {
    unsigned char c = *text;
    if (c == '"' || c == '\\')
      result += '\\';
    if (c < 0x20)
      result += format("\\u%04x", c);
    else
      result += *text;
  }
  return result + "\"";
}

/// Rows are numbered so that each (stage, device) has its own.
static uint64_t rowOf(const penstock_program &program,
                      const penstock_task &task, uint32_t device) {
  return uint64_t(task.stage) * program.device_count + device;
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
  for (uint64_t i = 0; i < slices.size(); ++i) {
    const TraceBuffer::Slice &slice = slices[i];
    long long n = slice.n;
    std::string name, kind;
    if (slice.isWait && slice.id >= program.channel_count) {
      const penstock_group &group =
          program.groups[slice.id - program.channel_count];
      name = jsonString(format("sum %s[%lld]", group.name, n).c_str());
      kind = "sum";
    } else if (slice.isWait) {
      const penstock_channel &channel = program.channels[slice.id];
      n = n * channel.stride + channel.offset;
      name = jsonString(format("wait %s[%lld]", channel.name, n).c_str());
      kind = "wait";
    } else {
      const penstock_task &task = program.tasks[slice.id];
      name = format("\"%c%lld\"", char(task.letter), n);
      kind = "action";
    }
    text +=
        format(",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,"
               "\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f}",
               name.c_str(), kind.c_str(), processOf(device),
               (unsigned long long)rows[i], double(slice.begin - origin) * 1e-3,
               double(slice.end - slice.begin) * 1e-3);
    if (text.size() > 1 << 20)
      if (Error error = flush())
        return error;
  }
  return {};
}

Error TraceWriter::close(const std::vector<int64_t> &clockErrors) {
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
