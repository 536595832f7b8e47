//===- DataSet.cpp - Samples for the sources of a program -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening checks types, shapes, lengths and labels, each with a message that
// says what was expected and what was found. Gathering is a copy of whole
// samples.
//===----------------------------------------------------------------------===//

#include "runtime/io/DataSet.h"

#include "penstock/checksum.h"
#include "penstock/one_line.h"
#include "runtime/support/Roles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

using namespace penstock::runtime;

/// The finalizer of SplitMix64: every output bit depends on every input bit.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t penstock::runtime::permute(uint64_t index, uint64_t size,
                                    uint64_t seed, uint64_t epoch) {
  if (size < 2)
    return index;
  unsigned half = (std::bit_width(size - 1) + 1) / 2;
  uint64_t mask = (uint64_t(1) << half) - 1;
  uint64_t key = mix(mix(seed) ^ epoch);
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      uint64_t next = left ^ (mix(key + (round << 56) + right) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= size);
  return index;
}

const char *penstock::runtime::nameOf(Last last) {
  return last == Last::Drop ? "drop" : last == Last::Pad ? "pad" : "wrap";
}

bool penstock::runtime::sourcesShareSamples(const penstock_program &program) {
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    if (isSource(channel) && (channel.type.rank == 0 ||
                              channel.type.shape[0] != program.microbatch_size))
      return false;
  }
  return true;
}

std::vector<const penstock_channel *>
penstock::runtime::findSources(const penstock_program &program) {
  std::vector<const penstock_channel *> sources;
  auto isKnown = [&](const penstock_channel &channel) {
    return std::any_of(sources.begin(), sources.end(), [&](auto *source) {
      return !std::strcmp(source->endpoint, channel.endpoint);
    });
  };
  for (uint32_t i = 0; i < program.channel_count; ++i)
    if (isSource(program.channels[i]) && !isKnown(program.channels[i]))
      sources.push_back(&program.channels[i]);
  return sources;
}

std::vector<std::string> DataSet::paths() const {
  std::vector<std::string> result;
  for (const Input &input : inputs)
    for (std::string &path : input.array.paths())
      result.push_back(std::move(path));
  return result;
}

uint32_t DataSet::inputOf(const penstock_channel &source) const {
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == source.endpoint)
      return i;
  return 0; // Not reached: open() checked every source.
}

Error DataSet::check(const Input &input, const penstock_channel &channel,
                     const char *flag) const {
  const penstock_tensor &type = channel.type;
  const SampleArray &array = input.array;
  if (!whole && (type.rank == 0 || type.shape[0] != microbatch))
    return defect("source '%s' does not start with the microbatch axis",
                  channel.endpoint);
  unsigned first = whole ? 0 : 1;
  bool isWidened = type.element == PENSTOCK_I64 &&
                   array.element == PENSTOCK_I32 &&
                   channel.role == PENSTOCK_CHANNEL_LABELS;
  if (array.divisor != 0 && type.element != PENSTOCK_F32)
    return userError("%s: input '%s' takes %s; only float32 is divided", flag,
                     input.name.c_str(), elementName(type.element));
  if (whole && array.divisor != 0)
    return userError("%s: input '%s' has no axis of samples; only samples are "
                     "divided",
                     flag, input.name.c_str());
  if (whole && !array.data())
    return userError("%s: input '%s' has no axis of samples, along which "
                     "several files could be joined",
                     flag, input.name.c_str());
  if (array.divisor == 0 && array.element == PENSTOCK_U8 &&
      type.element == PENSTOCK_F32)
    return userError("%s: input '%s' takes float32, '%s' holds uint8; "
                     "'%s:/255' makes fractions of it",
                     flag, input.name.c_str(), input.path.c_str(),
                     input.path.c_str());
  if (array.element != type.element && !isWidened && array.divisor == 0)
    return userError("%s: input '%s' takes %s, '%s' holds %s", flag,
                     input.name.c_str(), elementName(type.element),
                     input.path.c_str(), elementName(array.element));
  bool isSame = array.shape.size() == type.rank &&
                std::equal(array.shape.begin() + first, array.shape.end(),
                           type.shape + first);
  if (!isSame) {
    std::string expected = "(samples";
    for (uint32_t i = 1; i < type.rank; ++i)
      expected += format(", %lld", (long long)type.shape[i]);
    expected += type.rank == 1 ? ",)" : ")";
    if (whole)
      expected = shapeText(type.shape, type.rank);
    return userError("%s: input '%s' takes arrays of shape %s, '%s' has %s",
                     flag, input.name.c_str(), expected.c_str(),
                     input.path.c_str(),
                     shapeText(array.shape.data(), array.shape.size()).c_str());
  }
  return {};
}

/// The number of the first element that the range has not, or -1. Members of a
/// .npz file may begin anywhere.
template <typename T>
static int64_t findOutside(const char *data, uint64_t count,
                           const penstock_range &range) {
  auto load = [&](uint64_t i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  };
  auto isOutside = [&](T element) {
    // What is too large for the type of the bounds is too large for all.
    int64_t value = std::is_same_v<T, uint64_t> && element > uint64_t(INT64_MAX)
                        ? INT64_MAX
                        : int64_t(element);
    return (value < range.low) | (value >= range.high) &&
           !(range.ignores && value == range.ignored);
  };
  // Most data are right: a loop without a way out runs over them in vectors.
  constexpr uint64_t kBlock = 1 << 12;
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t end = std::min(begin + kBlock, count);
    bool isAny = false;
    for (uint64_t i = begin; i < end; ++i)
      isAny |= isOutside(load(i));
    for (uint64_t i = begin; isAny && i < end; ++i)
      if (isOutside(load(i)))
        return int64_t(i);
  }
  return -1;
}

static int64_t findOutside(uint32_t element, const char *data, uint64_t count,
                           const penstock_range &range) {
  switch (element) {
  case PENSTOCK_I64:
    return findOutside<int64_t>(data, count, range);
  case PENSTOCK_I32:
    return findOutside<int32_t>(data, count, range);
  case PENSTOCK_I16:
    return findOutside<int16_t>(data, count, range);
  case PENSTOCK_I8:
    return findOutside<int8_t>(data, count, range);
  case PENSTOCK_U64:
    return findOutside<uint64_t>(data, count, range);
  case PENSTOCK_U32:
    return findOutside<uint32_t>(data, count, range);
  case PENSTOCK_U16:
    return findOutside<uint16_t>(data, count, range);
  case PENSTOCK_U8:
  case PENSTOCK_BOOL:
    return findOutside<uint8_t>(data, count, range);
  default:
    return -1;
  }
}

/// The same of a whole array, in pieces whose pages are given back.
static int64_t findOutside(const SampleArray &array, bool isWhole,
                           const penstock_range &range) {
  uint64_t width = elementBytes(array.element);
  uint64_t perSample = array.sampleBytes() / width;
  if (isWhole) {
    uint64_t count = 1;
    for (int64_t extent : array.shape)
      count *= uint64_t(extent);
    return findOutside(array.element, array.data(), count, range);
  }
  constexpr uint64_t kPiece = 1 << 21;
  int64_t step =
      int64_t(std::max<uint64_t>(kPiece / std::max<uint64_t>(perSample, 1), 1));
  for (int64_t sample = 0, run = 0; sample < array.shape[0]; sample += run) {
    const char *data = array.find(sample, run);
    run = std::min(run, step);
    int64_t at =
        findOutside(array.element, data, uint64_t(run) * perSample, range);
    if (at >= 0)
      return int64_t(uint64_t(sample) * perSample) + at;
    array.giveBackPages();
  }
  return -1;
}

Error DataSet::checkRange(const Input &input, const penstock_range &range,
                          const char *flag) const {
  const SampleArray &array = input.array;
  int64_t at = findOutside(array, whole, range);
  if (at < 0)
    return {};

  // 1. What it is, and where.
  uint64_t bytes = elementBytes(array.element);
  int64_t value = 0;
  int64_t perSample = whole ? 0 : int64_t(array.sampleBytes() / bytes), run = 0;
  const char *data =
      whole ? array.data() + at * int64_t(bytes)
            : array.find(at / perSample, run) + at % perSample * int64_t(bytes);
  std::memcpy(&value, data, bytes);
  bool isSigned = array.element == PENSTOCK_I32 ||
                  array.element == PENSTOCK_I16 || array.element == PENSTOCK_I8;
  if (unsigned unused = 64 - 8 * unsigned(bytes); isSigned)
    value = int64_t(uint64_t(value) << unused) >> unused;
  std::string number = array.element == PENSTOCK_U64
                           ? format("%llu", (unsigned long long)value)
                           : format("%lld", (long long)value);
  std::vector<int64_t> position(array.shape.size());
  for (size_t axis = position.size(); axis-- > 0;) {
    position[axis] = at % array.shape[axis];
    at /= array.shape[axis];
  }
  std::string where =
      format("at %s", shapeText(position.data(), position.size()).c_str());
  if (!whole && !position.empty()) {
    std::string sample = format("in sample %lld", (long long)position[0]);
    where = position.size() == 1 ? sample : sample + ", " + where;
  }

  // 2. What it may be.
  std::string legal =
      format("[%lld, %lld)", (long long)range.low, (long long)range.high);
  if (range.ignores)
    legal += format(" or %lld, which is ignored", (long long)range.ignored);
  return userError("%s: '%s' holds %s %s; input '%s' takes numbers in %s", flag,
                   input.path.c_str(), number.c_str(), where.c_str(),
                   input.name.c_str(), legal.c_str());
}

Error DataSet::add(const penstock_program &program, const std::string &name,
                   const std::string &path, const char *flag) {
  Input input{name, path, {}, flag};
  if (Error error = input.array.open(path, flag))
    return error;
  size_t readers = 0;
  for (uint32_t i = 0; i < program.channel_count; ++i) {
    const penstock_channel &channel = program.channels[i];
    if (!isSource(channel) || name != channel.endpoint)
      continue;
    ++readers;
    if (Error error = check(input, channel, flag))
      return error;
  }
  if (SampleStream *stream = input.array.getStream())
    stream->setReaders(readers);
  int64_t count = whole ? 1 : input.array.shape[0];
  if (samples >= 0 && count != samples)
    return userError("'%s' has %lld samples, '%s' has %lld",
                     inputs.front().path.c_str(), (long long)samples,
                     path.c_str(), (long long)count);
  for (uint32_t i = 0; i < program.range_count; ++i)
    if (name == program.ranges[i].endpoint && input.array.getStream())
      return userError("%s: labels and indices are checked before anything "
                       "runs, and standard input is read once; write them to "
                       "a file",
                       flag);
    else if (name == program.ranges[i].endpoint)
      if (Error error = checkRange(input, program.ranges[i], flag))
        return error;
  samples = count;
  inputs.push_back(std::move(input));
  return {};
}

Error DataSet::open(
    const penstock_program &program,
    const std::vector<std::pair<std::string, std::string>> &files,
    const std::string &labels, const char *dataFlag, const char *labelsFlag,
    const ReadsSource &reads) {
  microbatch = program.microbatch_size;
  whole = infers(program) && !sourcesShareSamples(program);
  std::vector<const penstock_channel *> sources = findSources(program);
  std::string known;
  const penstock_channel *taken = nullptr; // the labels
  for (const penstock_channel *source : sources)
    if (source->role == PENSTOCK_CHANNEL_LABELS)
      taken = source;
    else
      known +=
          (known.empty() ? "'" : ", '") + std::string(source->endpoint) + "'";

  // 1. Each file belongs to one known input.
  for (const auto &[name, path] : files) {
    const char *const *unused = program.unused_inputs;
    if (std::find(unused, unused + program.unused_input_count, name) !=
        unused + program.unused_input_count) {
      notes.push_back(format("--%s %s: what was compiled does not depend on "
                             "this input",
                             dataFlag, name.c_str()));
      continue;
    }
    if (std::none_of(sources.begin(), sources.end(),
                     [&](auto *source) { return name == source->endpoint; }))
      return userError("--%s: unknown input '%s', the model's inputs are %s",
                       dataFlag, name.c_str(), known.c_str());
    if (std::count_if(files.begin(), files.end(),
                      [&](auto &file) { return file.first == name; }) > 1)
      return userError("--%s: input '%s' is given twice", dataFlag,
                       name.c_str());
  }
  // A model may have an input of that name itself; then it is data, too.
  bool hasLabels =
      taken && std::any_of(files.begin(), files.end(), [&](auto &file) {
        return file.first == taken->endpoint;
      });
  if (!labels.empty() && hasLabels)
    return userError("--%s: input '%s' is given twice", labelsFlag,
                     taken->endpoint);
  if (!labels.empty() && !taken)
    return userError("--%s: this program takes no labels", labelsFlag);

  // 2. Each input has a file.
  for (const penstock_channel *source : sources) {
    std::string name = source->endpoint;
    if (source == taken && !hasLabels) {
      if (labels.empty())
        return userError("--%s FILE.npy is missing", labelsFlag);
      if (reads && !reads(source->endpoint))
        continue;
      std::string flag = format("--%s", labelsFlag);
      if (Error error = add(program, name, labels, flag.c_str()))
        return error;
      continue;
    }
    auto file = std::find_if(files.begin(), files.end(),
                             [&](auto &file) { return file.first == name; });
    if (file == files.end())
      return userError("--%s %s=FILE.npy is missing", dataFlag, name.c_str());
    if (reads && !reads(source->endpoint))
      continue;
    std::string flag = format("--%s %s", dataFlag, name.c_str());
    if (Error error = add(program, name, file->second, flag.c_str()))
      return error;
  }
  return {};
}

/// The label that the loss leaves out, if the program knows one.
static const penstock_range *findIgnored(const penstock_program &program) {
  for (uint32_t i = 0; i < program.range_count; ++i)
    for (const penstock_channel *source : findSources(program))
      if (program.ranges[i].ignores &&
          source->role == PENSTOCK_CHANNEL_LABELS &&
          !std::strcmp(source->endpoint, program.ranges[i].endpoint))
        return &program.ranges[i];
  return nullptr;
}

/// A statistic that training moves is of all samples of a microbatch.
static const penstock_variable *
findMovedStatistic(const penstock_program &program) {
  for (uint32_t i = 0; i < program.variable_count; ++i)
    if (program.variables[i].role == PENSTOCK_ROLE_STATISTIC &&
        !program.variables[i].frozen)
      return &program.variables[i];
  return nullptr;
}

Error DataSet::setUpdate(const penstock_program &program, int64_t microbatches,
                         Last given, const char *flag) {
  int64_t update = microbatch * microbatches;
  last = given;
  updateMicrobatches = microbatches;
  if (samples < 0) {
    usable = update;
    return {};
  }
  if (samples == 0)
    return userError("--%s: '%s' has no samples", flag,
                     inputs.empty() ? "an input" : inputs.front().path.c_str());
  if (last == Last::Pad) {
    const penstock_range *range = findIgnored(program);
    if (!range)
      return userError("--last=pad: this program has no label that does not "
                       "count; compile it with --ignore-label, or use "
                       "--last=wrap");
    ignoredLabel = range->ignored;
    if (const penstock_variable *statistic = findMovedStatistic(program))
      return userError("--last=pad: '%s' is a statistic of all samples of a "
                       "microbatch, those that fill it up, too; use "
                       "--last=wrap, or compile with --batch-norm=frozen",
                       statistic->name);
  }
  usable = last == Last::Drop ? samples / update * update
                              : (samples + update - 1) / update * update;
  if (usable > 0)
    return {};
  if (microbatches == 1)
    return userError("--%s: %lld samples do not fill one microbatch of %lld; "
                     "--last=wrap fills it up",
                     flag, (long long)samples, (long long)microbatch);
  return userError("--%s: %lld samples do not fill one update of %lld "
                   "microbatches of %lld; --last=wrap fills it up",
                   flag, (long long)samples, (long long)microbatches,
                   (long long)microbatch);
}

Error DataSet::setEvaluated(const char *flag) {
  if (samples == 0)
    return userError("--%s: '%s' has no samples", flag,
                     inputs.empty() ? "an input" : inputs.front().path.c_str());
  evaluates = true;
  if (samples < 0) {
    usable = microbatch;
    return {};
  }
  tail.index = samples / microbatch;
  tail.samples = samples % microbatch;
  usable = tail.index * microbatch;
  if (tail.samples == 0)
    return {};
  tail.copies = microbatch / tail.samples;
  tail.extra = microbatch % tail.samples;
  usable += (tail.extra ? 2 : 1) * microbatch;
  return {};
}

Error DataSet::setPadded(const char *flag) {
  if (samples == 0)
    return userError("--%s: '%s' has no samples", flag,
                     inputs.empty() ? "an input" : inputs.front().path.c_str());
  usable = whole || samples < 0
               ? 1
               : (samples + microbatch - 1) / microbatch * microbatch;
  return {};
}

std::vector<DataSet::Opened> DataSet::listOpened() const {
  constexpr uint64_t kBlocks = 64, kBlock = 4096;
  std::vector<Opened> result;
  for (const Input &input : inputs) {
    Checksum parts;
    for (const NpyArray *part : input.array.arrays()) {
      // Beginning, end and what lies evenly between them.
      const MappedFile &file = part->file;
      uint64_t size = file.size();
      parts.add(&size, sizeof(size));
      for (uint64_t i = 0; i < kBlocks; ++i) {
        uint64_t last = size - std::min(size, kBlock);
        uint64_t at = uint64_t(double(last) * double(i) / double(kBlocks - 1));
        parts.add(file.data() + std::min(at, last), std::min(size, kBlock));
      }
    }
    const SampleArray &array = input.array;
    std::string type =
        format("%s %s", elementName(array.element),
               shapeText(array.shape.data(), array.shape.size()).c_str());
    if (array.divisor != 0)
      type += format(" divided by %.17g", array.divisor);
    result.push_back({input.flag, input.path, type, samples, parts.getText()});
  }
  return result;
}

int64_t DataSet::evaluatedAt(int64_t index) const {
  int64_t place = index - tail.index * microbatch;
  if (place < 0)
    return index;
  if (place < tail.copies * tail.samples)
    return tail.index * microbatch + place % tail.samples;
  return samples - 1;
}

int64_t DataSet::getInOrder() const {
  if (evaluates)
    return tail.index * microbatch;
  return last == Last::Pad ? usable - microbatch * updateMicrobatches : samples;
}

int64_t DataSet::positionOf(int64_t index) const {
  int64_t position = index % usable;
  switch (last) {
  case Last::Drop:
    // Only what infers is filled up, with its last sample.
    return std::min(position, samples - 1);
  case Last::Wrap:
    return position % samples;
  case Last::Pad:
    break;
  }
  int64_t lastUpdate = getInOrder();
  if (position < lastUpdate)
    return position;
  int64_t number = (position - lastUpdate) / microbatch;
  int64_t slot = (position - lastUpdate) % microbatch;
  int64_t each = (samples - lastUpdate) / updateMicrobatches;
  int64_t over = (samples - lastUpdate) % updateMicrobatches;
  if (slot >= each + (number < over))
    return -1;
  return lastUpdate + number * each + std::min(number, over) + slot;
}

int64_t DataSet::sampleAt(int64_t index) const {
  if (evaluates)
    return evaluatedAt(index);
  // Where no sample counts, there is one all the same.
  uint64_t position = std::max<int64_t>(positionOf(index), 0);
  return shuffle ? permute(position, samples, seed, uint64_t(index) / usable)
                 : position;
}

/// Elements of another type, as numbers; divided where a divisor is given.
template <typename From, typename To>
static void convertFrom(const char *from, uint64_t count, double divisor,
                        char *to) {
  for (uint64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    To result = To(value);
    if constexpr (std::is_floating_point_v<To>)
      result /= To(divisor);
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

/// Elements as the program takes them.
static void convert(const SampleArray &array, const char *from, uint64_t count,
                    uint32_t element, char *to) {
  if (array.divisor == 0 && array.element == element) {
    std::memcpy(to, from, count * elementBytes(element));
    return;
  }
  switch (array.element) {
  case PENSTOCK_I32: // labels
    return convertFrom<int32_t, int64_t>(from, count, 0, to);
  case PENSTOCK_U8:
    return convertFrom<uint8_t, float>(from, count, array.divisor, to);
  case PENSTOCK_I8:
    return convertFrom<int8_t, float>(from, count, array.divisor, to);
  case PENSTOCK_U16:
    return convertFrom<uint16_t, float>(from, count, array.divisor, to);
  case PENSTOCK_I16:
    return convertFrom<int16_t, float>(from, count, array.divisor, to);
  default:
    return convertFrom<float, float>(from, count, array.divisor, to);
  }
}

/// How many microbatches ahead the samples are asked for: some megabytes.
static int64_t getAhead(uint64_t bytes) {
  constexpr int64_t kBytes = 8 << 20, kLeast = 2, kMost = 64;
  return std::clamp(kBytes / int64_t(std::max<uint64_t>(bytes, 1)), kLeast,
                    kMost);
}

void DataSet::gather(const penstock_channel &channel, uint32_t input, int64_t n,
                     void *target) const {
  const SampleArray &array = inputs[input].array;
  if (whole) {
    std::memcpy(target, array.data(), channel.type.bytes);
    return;
  }
  int64_t first = (n * channel.stride + channel.offset) * microbatch;
  // Most microbatches have samples that follow each other.
  int64_t position = evaluates ? first : first % usable;
  bool isInOrder = !shuffle && position + microbatch <= getInOrder();
  SampleStream *stream = array.getStream();
  if (isInOrder && !stream && array.divisor == 0 &&
      array.element == channel.type.element) {
    int64_t run = 0;
    const char *from = array.find(position, run);
    if (run >= microbatch) {
      std::memcpy(target, from, channel.type.bytes);
      return;
    }
  }

  uint64_t elements = 1;
  for (uint32_t i = 1; i < channel.type.rank; ++i)
    elements *= channel.type.shape[i];

  uint64_t width = elementBytes(channel.type.element);
  if (stream)
    stream->waitFor(first + microbatch);
  auto copy = [&](int64_t sample, int64_t count, int64_t to) {
    for (int64_t run = 0; count > 0; sample += run, to += run, count -= run) {
      const char *from = array.find(sample, run);
      run = std::min(run, count);
      convert(array, from, uint64_t(run) * elements, channel.type.element,
              static_cast<char *>(target) + uint64_t(to) * elements * width);
    }
  };

  if (isInOrder) {
    copy(position, microbatch, 0);
    if (stream)
      stream->release(&channel,
                      ((n + 1) * channel.stride + channel.offset) * microbatch);
    return;
  }

  // Samples that follow each other are copied together.
  bool isMasked = last == Last::Pad && channel.role == PENSTOCK_CHANNEL_LABELS;
  auto placeOf = [&](int64_t i) {
    return isMasked && positionOf(first + i) < 0 ? -1 : sampleAt(first + i);
  };
  for (int64_t i = 0, sample = placeOf(0), next = 0; i < microbatch;
       sample = next) {
    int64_t count = 1;
    for (; i + count < microbatch; ++count) {
      next = placeOf(i + count);
      if (sample < 0 || next != sample + count)
        break;
    }
    if (i + count < microbatch && next >= 0)
      array.fetch(next);
    if (sample < 0)
      std::fill_n(static_cast<int64_t *>(target) + i * elements, elements,
                  ignoredLabel);
    else
      copy(sample, count, i);
    i += count;
  }
  if (shuffle && array.isLarge())
    prefetch(array, first + channel.stride * microbatch *
                                getAhead(channel.type.bytes));
}

bool DataSet::hasStream() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input &input) {
    return input.array.getStream() != nullptr;
  });
}

std::vector<ManifestData> DataSet::describe() const {
  constexpr uint64_t kBlocks = 64, kBlock = 4096;
  std::vector<ManifestData> arrays;
  for (const Input &input : inputs) {
    const SampleArray &array = input.array;
    Checksum checksum;
    for (const NpyArray *part : array.arrays()) {
      // Nothing that was read of a stream is kept.
      if (array.getStream())
        break;
      const char *begin = part->file.data();
      uint64_t size = part->file.size(), header = uint64_t(part->data - begin);
      checksum.add(begin, header);
      checksum.add(&size, sizeof(size));
      uint64_t values = size - header;
      for (uint64_t i = 0; i < kBlocks; ++i) {
        uint64_t length = std::min(kBlock, values);
        // The last one is at the end.
        uint64_t at = (values - length) / (kBlocks - 1) * i;
        if (i == kBlocks - 1)
          at = values - length;
        checksum.add(part->data + at, length);
      }
    }
    if (array.divisor != 0)
      checksum.add(&array.divisor, sizeof(array.divisor));
    arrays.push_back({input.name, elementName(array.element), array.shape,
                      checksum.getText()});
  }
  return arrays;
}

/// Reads of a shuffled file are of the disk's choosing unless they are begun
/// ahead of time. To look whether a sample is in memory is a system call: while
/// all are, the first one of a microbatch stands for it.
void DataSet::prefetch(const SampleArray &array, int64_t first) const {
  int64_t looks = isInMemory.load(std::memory_order_relaxed) ? 1 : microbatch;
  bool areThere = true;
  for (int64_t i = 0; i < looks; ++i)
    areThere &= array.prefetch(sampleAt(first + i));
  for (int64_t i = looks; !areThere && i < microbatch; ++i)
    array.prefetch(sampleAt(first + i));
  isInMemory.store(areThere, std::memory_order_relaxed);
}

std::string DataSet::suspects(int64_t first, int64_t count) const {
  int64_t end = (first + count) * microbatch;
  for (const Input &input : inputs) {
    const SampleArray &array = input.array;
    if (array.element != PENSTOCK_F32 || array.getStream())
      continue;
    uint64_t elements = 1;
    for (size_t i = 1; i < array.shape.size(); ++i)
      elements *= array.shape[i];
    for (int64_t index = first * microbatch; index < end; ++index) {
      int64_t sample = sampleAt(index);
      int64_t run = 0;
      const char *data = array.find(sample, run);
      for (uint64_t i = 0; i < elements; ++i) {
        float value;
        std::memcpy(&value, data + 4 * i, 4);
        if (!std::isfinite(value))
          return format("'%s' holds %g in sample %lld", input.path.c_str(),
                        value, (long long)sample);
      }
    }
  }
  return "the learning rate may be too large";
}
