//===- Handshake.cpp - Whether all processes run the same -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 collects the records and sends them to all.
//===----------------------------------------------------------------------===//

#include "runtime/job/Handshake.h"

#include "runtime/job/Bytes.h"

#include <algorithm>
#include <map>

using namespace penstock::runtime;

constexpr uint32_t kRecordVersion = 2;
constexpr uint16_t kTag = 1;

std::string penstock::runtime::encode(const Record &record) {
  ByteWriter out;
  out.add(kRecordVersion).addText(record.host).add(record.pid);
  out.add(int32_t(record.code));
  out.addText(record.sentence).add(record.threads);
  out.add(uint32_t(record.facts.size()));
  for (const Fact &fact : record.facts)
    out.add(fact.kind).addText(fact.name).addText(fact.value);
  out.add(uint32_t(record.files.size()));
  for (const FileFact &file : record.files)
    out.addText(file.input)
        .addText(file.name)
        .add(file.samples)
        .addText(file.type)
        .addText(file.checksum);
  out.add(uint32_t(record.cores.size()));
  for (int32_t core : record.cores)
    out.add(core);
  out.add(uint32_t(record.places.size()));
  for (const std::string &place : record.places)
    out.addText(place);
  return std::move(out.bytes);
}

bool penstock::runtime::decode(std::string_view bytes, Record &record) {
  ByteReader in(bytes);
  record = {};
  if (in.take<uint32_t>() != kRecordVersion)
    return false;
  record.host = in.takeText();
  record.pid = in.take<int32_t>();
  record.code = in.take<int32_t>();
  record.sentence = in.takeText();
  record.threads = in.take<uint32_t>();
  record.facts.resize(in.takeCount(9));
  for (Fact &fact : record.facts) {
    auto kind = in.take<uint8_t>();
    if (kind > Fact::Property)
      return false;
    fact.kind = Fact::Kind(kind);
    fact.name = in.takeText();
    fact.value = in.takeText();
  }
  record.files.resize(in.takeCount(24));
  for (FileFact &file : record.files) {
    file.input = in.takeText();
    file.name = in.takeText();
    file.samples = in.take<int64_t>();
    file.type = in.takeText();
    file.checksum = in.takeText();
  }
  record.cores.resize(in.takeCount(4));
  for (int32_t &core : record.cores)
    core = in.take<int32_t>();
  record.places.resize(in.takeCount(4));
  for (std::string &place : record.places)
    place = in.takeText();
  return in.isComplete() && record.code >= 0 && record.code < 256;
}

/// "rank 2 (host node7)".
static std::string describe(const std::vector<Record> &records, size_t rank) {
  return format("rank %zu (host %s)", rank, records[rank].host.c_str());
}

static Error compareFacts(const std::vector<Record> &records, size_t rank) {
  const Record &root = records[0], &other = records[rank];
  size_t count = std::max(root.facts.size(), other.facts.size());
  for (size_t i = 0; i < count; ++i) {
    // Both sides list the same names; whatever else is another executable.
    bool isAlike = i < root.facts.size() && i < other.facts.size() &&
                   root.facts[i].kind == other.facts[i].kind &&
                   root.facts[i].name == other.facts[i].name;
    if (isAlike && root.facts[i].value == other.facts[i].value)
      continue;
    std::string who = describe(records, rank), zero = describe(records, 0);
    if (!isAlike || root.facts[i].kind == Fact::Executable)
      return userError("%s runs another executable than %s: copy it, or use a "
                       "shared folder",
                       who.c_str(), zero.c_str());
    const char *name = root.facts[i].name.c_str();
    auto text = [](const std::string &value, const char *absent) {
      return value.empty() ? absent : value.c_str();
    };
    const std::string &a = root.facts[i].value, &b = other.facts[i].value;
    if (root.facts[i].kind == Fact::Flag)
      return userError("%s is %s on rank 0 and %s on rank %zu; give all "
                       "processes the same",
                       name, text(a, "not given"), text(b, "not given"), rank);
    return userError("%s has another %s than %s, so that bits could differ: "
                     "%s, and %s",
                     who.c_str(), name, zero.c_str(), text(b, "none"),
                     text(a, "none"));
  }
  return {};
}

/// Those of a host take their places in turn.
static Error comparePlaces(const std::vector<Record> &records) {
  std::map<std::string, size_t> turns;
  std::map<std::pair<std::string, std::string>, size_t> taken;
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const Record &record = records[rank];
    size_t turn = turns[record.host]++;
    if (record.places.empty())
      continue;
    const std::string &place = record.places[turn % record.places.size()];
    auto [other, isNew] = taken.try_emplace({record.host, place}, rank);
    if (!isNew)
      return userError("rank %zu and rank %zu (host %s) would be on one GPU; "
                       "give each its own, or start one process, whose devices "
                       "may share it",
                       other->second, rank, record.host.c_str());
  }
  return {};
}

/// Whoever reads a file has to see the same one, and all of a set have as many
/// samples.
static Error compareFiles(const std::vector<Record> &records) {
  struct Seen {
    const FileFact *file;
    size_t rank;
  };
  std::map<std::string, Seen> byInput;
  for (size_t rank = 0; rank < records.size(); ++rank)
    for (const FileFact &file : records[rank].files) {
      auto [place, isNew] = byInput.try_emplace(file.input, Seen{&file, rank});
      if (isNew)
        continue;
      const FileFact &known = *place->second.file;
      size_t other = place->second.rank;
      if (known.samples != file.samples)
        return userError("%s: '%s' differs between rank %zu (%lld samples) and "
                         "rank %zu (%lld)",
                         file.input.c_str(), file.name.c_str(), rank,
                         (long long)file.samples, other,
                         (long long)known.samples);
      if (known.type != file.type)
        return userError("%s: '%s' is %s on rank %zu and %s on rank %zu",
                         file.input.c_str(), file.name.c_str(),
                         file.type.c_str(), rank, known.type.c_str(), other);
      if (known.checksum != file.checksum)
        return userError("%s: '%s' holds other values on rank %zu (host %s) "
                         "than on rank %zu (host %s)",
                         file.input.c_str(), file.name.c_str(), rank,
                         records[rank].host.c_str(), other,
                         records[other].host.c_str());
    }
  // The set is what stands before the input's own name: "--data",
  // "--eval-data".
  std::map<std::string, Seen> bySet;
  for (size_t rank = 0; rank < records.size(); ++rank)
    for (const FileFact &file : records[rank].files) {
      bool isEvaluation = file.input.rfind("--eval", 0) == 0;
      auto [place, isNew] =
          bySet.try_emplace(isEvaluation ? "eval" : "train", Seen{&file, rank});
      const FileFact &known = *place->second.file;
      if (known.samples != file.samples)
        return userError("'%s' has %lld samples (rank %zu), '%s' has %lld "
                         "(rank %zu)",
                         known.name.c_str(), (long long)known.samples,
                         place->second.rank, file.name.c_str(),
                         (long long)file.samples, rank);
    }
  return {};
}

Error penstock::runtime::compare(const std::vector<Record> &records) {
  // 1. Those that cannot begin at all. What all say is said once.
  for (size_t rank = 0; rank < records.size(); ++rank) {
    const Record &record = records[rank];
    if (record.code == PENSTOCK_DONE)
      continue;
    if (rank == 0)
      return {record.code, record.sentence};
    return {record.code, format("%s: %s", describe(records, rank).c_str(),
                                record.sentence.c_str())};
  }

  // 2. What has to be the same.
  for (size_t rank = 1; rank < records.size(); ++rank)
    if (Error error = compareFacts(records, rank))
      return error;
  if (Error error = comparePlaces(records))
    return error;
  return compareFiles(records);
}

Error penstock::runtime::exchange(const Job &job, Control &control,
                                  const Record &own,
                                  std::vector<Record> &records) {
  records.assign(job.size, {});
  Error over = {PENSTOCK_PEER_FAILED, "the other processes have ended"};
  if (job.rank != 0) {
    control.send(0, kTag, encode(own));
    for (Record &record : records) {
      auto bytes = control.receive(0, kTag);
      if (!bytes || !decode(*bytes, record))
        return over;
    }
    return {};
  }
  records[0] = own;
  for (int rank = 1; rank < job.size; ++rank) {
    auto bytes = control.receive(rank, kTag);
    if (!bytes)
      return over;
    // Another build may describe itself in other ways.
    if (!decode(*bytes, records[rank]))
      records[rank] = {"?", 0,  0, "", {{Fact::Executable, "", "unknown"}},
                       {},  {}, 0, {}};
  }
  for (int rank = 1; rank < job.size; ++rank)
    for (const Record &record : records)
      control.send(rank, kTag, encode(record));
  return {};
}

void penstock::runtime::findNeighbors(const std::vector<Record> &records,
                                      Job &job) {
  job.hosts.clear();
  job.localRank = job.localSize = 0;
  for (int rank = 0; rank < job.size; ++rank) {
    job.hosts.push_back(records[rank].host);
    if (records[rank].host != records[job.rank].host)
      continue;
    job.localRank += rank < job.rank;
    ++job.localSize;
  }
}
