//===- LossLog.cpp - Losses that a run has logged -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LossLog.h.
//===----------------------------------------------------------------------===//

#include "LossLog.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;
using namespace penstock;

/// Reads a number; null is one that is infinite or NaN.
static std::optional<double> getNumber(const json::Object &object,
                                       StringRef name) {
  const json::Value *value = object.get(name);
  if (!value)
    return std::nullopt;
  if (value->kind() == json::Value::Null)
    return std::nan("");
  return value->getAsNumber();
}

namespace {
/// Reads the records of a log, one after the other.
class LogReader {
public:
  /// Returns what is wrong with a record, or an empty text.
  StringRef add(const json::Object &record);
  LossLog take() { return std::move(log); }

private:
  LossLog log;
  double earlierSeconds = 0, seconds = 0;
};
} // namespace

StringRef LogReader::add(const json::Object &record) {
  std::optional<double> update = getNumber(record, "step");
  if (!update || !std::isfinite(*update))
    return "a record without a number as its step";
  if (const json::Object *evaluation = record.getObject("eval")) {
    if (std::optional<double> loss = getNumber(*evaluation, "loss"))
      log.evaluations.push_back({*update, seconds, *loss});
    return "";
  }
  std::optional<double> loss = getNumber(record, "loss");
  if (!loss)
    return "a record without a loss";
  if (!log.updates.empty() && *update <= log.updates.back().update)
    return "a step that is not after the one before it";
  std::optional<double> time = getNumber(record, "seconds");
  if (record.getBoolean("resumed").value_or(false))
    earlierSeconds = seconds;
  if (time && std::isfinite(*time))
    seconds = earlierSeconds + *time;
  log.updates.push_back({*update, seconds, *loss});
  return "";
}

std::optional<LossLog> penstock::readLossLog(StringRef path,
                                             std::string &error) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    error = path.str() + ": " + buffer.getError().message();
    return std::nullopt;
  }
  LogReader reader;
  StringRef rest = (*buffer)->getBuffer();
  for (size_t number = 1; rest.contains('\n'); ++number) {
    auto [line, behind] = rest.split('\n');
    rest = behind;
    if (line.trim().empty())
      continue;
    Expected<json::Value> value = json::parse(line);
    StringRef wrong = "";
    if (!value) {
      consumeError(value.takeError());
      wrong = "not a JSON object";
    } else if (const json::Object *record = value->getAsObject()) {
      wrong = reader.add(*record);
    } else {
      wrong = "not a JSON object";
    }
    if (wrong.empty())
      continue;
    error = (path + ":" + Twine(number) + ": " + wrong +
             "; a file that a program wrote with --log is needed")
                .str();
    return std::nullopt;
  }
  LossLog log = reader.take();
  if (log.updates.empty() && log.evaluations.empty()) {
    error = path.str() + ": no record of an update; a file that a program "
                         "wrote with --log is needed";
    return std::nullopt;
  }
  return log;
}
