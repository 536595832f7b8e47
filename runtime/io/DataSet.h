//===- DataSet.h - Samples for the sources of a program ---------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arrays of one data set, one per source, checked against the program, and
// the rule that says which samples microbatch k consists of. The rule knows
// nothing of devices or stages, so every cut sees the same data.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_IO_DATASET_H
#define PENSTOCK_RUNTIME_IO_DATASET_H

#include "runtime/io/Manifest.h"
#include "runtime/io/SampleArray.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace penstock::runtime {

/// A pseudo-random permutation of [0, size) without storage: a Feistel network
/// over the next even power of two, walked until it falls inside.
uint64_t permute(uint64_t index, uint64_t size, uint64_t seed, uint64_t epoch);

/// The use of samples that fill no update at the end of a pass: they are left
/// out, or an update is filled up, with samples whose labels do not count or
/// with those that the pass began with.
enum class Last { Drop, Pad, Wrap };
const char *nameOf(Last last);

class DataSet {
public:
  /// `files` are the NAME=FILE pairs of `dataFlag` ("data"), `labels` the file
  /// of `labelsFlag`, or empty. Checks every array against the channels. Of a
  /// program that infers the inputs need no axis of samples. Files of sources
  /// that `reads` refuses are not looked at.
  using ReadsSource = std::function<bool(const char *endpoint)>;
  Error open(const penstock_program &program,
             const std::vector<std::pair<std::string, std::string>> &files,
             const std::string &labels, const char *dataFlag,
             const char *labelsFlag, const ReadsSource &reads = nullptr);

  /// Returns notes on the files for the user, a line each.
  const std::vector<std::string> &getNotes() const { return notes; }

  /// The content of an open file, to compare with what others see.
  struct Opened {
    std::string input; // as flags name it, "--data x"
    std::string path, type;
    int64_t samples;
    std::string checksum; // of its size and of parts of it
  };
  std::vector<Opened> listOpened() const;
  /// Where no file is open here, others know it.
  void setSampleCount(int64_t count) { samples = count; }

  /// Microbatches per update of training. Fails when there is no update in a
  /// pass, or no way to fill the last one up.
  Error setUpdate(const penstock_program &program, int64_t microbatches,
                  Last last, const char *flag);
  /// For evaluation: samples that fill no microbatch stand in one of their own,
  /// repeated; see Tail.
  Error setEvaluated(const char *flag);
  /// For inference: the last microbatch is filled up with the last sample.
  Error setPadded(const char *flag);
  /// Each array is one message: the inputs share no axis of samples.
  bool isWhole() const { return whole; }
  void setShuffle(uint64_t value) {
    shuffle = true;
    seed = value;
    for (Input &input : inputs)
      input.array.setRandom();
  }

  /// Copies microbatch n of a channel's source to `target`.
  void gather(const penstock_channel &channel, uint32_t input, int64_t n,
              void *target) const;

  /// Returns true if no sample of microbatch n counts.
  bool isEmpty(int64_t n) const {
    return last == Last::Pad && positionOf(n * microbatch) < 0;
  }

  /// Returns a description, for messages, of a value that is not finite in
  /// microbatches first .. first + count - 1, which may make a loss not finite.
  std::string suspects(int64_t first, int64_t count) const;

  /// Name, type, shape and a digest of each array: of its header, its size, and
  /// of 64 blocks spread evenly over it.
  std::vector<ManifestData> describe() const;
  /// Returns true if an array of it comes from standard input.
  bool hasStream() const;

  /// The samples of an evaluation that fill no microbatch. Microbatch `index`
  /// has each of them `copies` times, and the last one `extra` times more;
  /// where there are extra ones, the next microbatch has that one only, so that
  /// they can be taken out of sums.
  struct Tail {
    int64_t index = 0, samples = 0, copies = 0, extra = 0;
  };
  const Tail &getTail() const { return tail; }

  /// All files that samples come from.
  std::vector<std::string> paths() const;

  /// Returns the number of a source in this set.
  uint32_t inputOf(const penstock_channel &source) const;
  int64_t sampleCount() const { return samples; }
  /// The samples of one pass: a multiple of those of an update.
  int64_t usableCount() const { return usable; }
  int64_t microbatchSize() const { return microbatch; }

private:
  std::vector<std::string> notes;
  struct Input {
    std::string name, path;
    SampleArray array;
    std::string flag;
  };

  Error add(const penstock_program &program, const std::string &name,
            const std::string &path, const char *flag);
  Error check(const Input &input, const penstock_channel &channel,
              const char *flag) const;
  /// Reads the whole array once.
  Error checkRange(const Input &input, const penstock_range &range,
                   const char *flag) const;

  void prefetch(const SampleArray &array, int64_t first) const;
  /// Which sample is the index-th one of the whole run.
  int64_t sampleAt(int64_t index) const;
  /// The same of an evaluation.
  int64_t evaluatedAt(int64_t index) const;
  /// How many samples a pass begins with that stand there as in the file, when
  /// nothing is shuffled.
  int64_t getInOrder() const;
  /// Where a sample of the run stands in its pass, or -1 where it only fills up
  /// the last update. With padding, that update has its samples divided evenly
  /// over its microbatches.
  int64_t positionOf(int64_t index) const;

  std::vector<Input> inputs;
  int64_t samples = -1, usable = 0, microbatch = 0;
  bool whole = false, shuffle = false, evaluates = false;
  uint64_t seed = 0;
  Last last = Last::Drop;
  int64_t ignoredLabel = 0, updateMicrobatches = 1;
  Tail tail;
  /// All samples that were last looked for were in memory.
  mutable std::atomic<bool> isInMemory = true;
};

/// Returns true if the first axis of every source is that of a microbatch's
/// samples.
bool sourcesShareSamples(const penstock_program &program);
/// Returns the first channel of each source, in the order of the channels.
std::vector<const penstock_channel *>
findSources(const penstock_program &program);

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_IO_DATASET_H
