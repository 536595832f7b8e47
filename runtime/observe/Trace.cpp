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
    count = kCapacity; // Everything is dropped, and said to be.
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

Error penstock::runtime::writeTrace(
    const std::string &path, const penstock_program &program,
    const std::vector<const TraceBuffer *> &buffers, int64_t origin) {
  OutputFile file;
  if (Error error = file.create(path))
    return error;
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  text += "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"
          "\"args\":{\"name\":\"penstock\"}}";

  // 1. The names of the rows.
  std::vector<bool> isNamed(uint64_t(program.stage_count + 1) *
                            program.device_count);
  auto nameRow = [&](const penstock_task &task, uint32_t device) {
    uint64_t row = rowOf(program, task, device);
    if (row >= isNamed.size() || isNamed[row])
      return;
    isNamed[row] = true;
    text += format(",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,"
                   "\"tid\":%llu,\"args\":{\"name\":\"stage %u (device %u)\"}}"
                   ",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,"
                   "\"tid\":%llu,\"args\":{\"sort_index\":%llu}}",
                   (unsigned long long)row, task.stage, device,
                   (unsigned long long)row, (unsigned long long)row);
  };
  for (uint32_t i = 0; i < program.task_count; ++i)
    nameRow(program.tasks[i], program.tasks[i].device);
  // Those of further replicas.
  for (uint32_t device = 0; device < buffers.size(); ++device)
    for (uint64_t i = 0; i < buffers[device]->size(); ++i)
      if (!(*buffers[device])[i].isWait)
        nameRow(program.tasks[(*buffers[device])[i].id], device);

  // 2. The slices. A wait stands in the row of the action that it delays.
  auto flush = [&]() {
    Error error = file.append(text);
    text.clear();
    return error;
  };
  for (uint32_t device = 0; device < buffers.size(); ++device) {
    const TraceBuffer *buffer = buffers[device];
    std::vector<uint64_t> rows(buffer->size());
    // Waits after the last action stand in its row.
    uint64_t row = 0;
    for (uint64_t i = 0; i < buffer->size(); ++i)
      if (!(*buffer)[i].isWait)
        row = rowOf(program, program.tasks[(*buffer)[i].id], device);
    for (uint64_t i = buffer->size(); i-- > 0;) {
      const TraceBuffer::Slice &slice = (*buffer)[i];
      if (!slice.isWait)
        row = rowOf(program, program.tasks[slice.id], device);
      rows[i] = row;
    }
    for (uint64_t i = 0; i < buffer->size(); ++i) {
      const TraceBuffer::Slice &slice = (*buffer)[i];
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
      text += format(",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,"
                     "\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f}",
                     name.c_str(), kind.c_str(), (unsigned long long)rows[i],
                     double(slice.begin - origin) * 1e-3,
                     double(slice.end - slice.begin) * 1e-3);
      if (text.size() > 1 << 20)
        if (Error error = flush())
          return error;
    }
  }
  text += "\n]}\n";
  if (Error error = flush())
    return error;
  return file.commit();
}
