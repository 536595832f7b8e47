//===- TraceTimeline.cpp - The timeline of a run --------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See TraceTimeline.h. The file has the JSON form of the trace event format.
//===----------------------------------------------------------------------===//

#include "TraceTimeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace llvm;
using namespace penstock;
using penstock::schedule::TimelinePicture;

namespace {

/// A process and a thread of it, which are a row.
using RowKey = std::pair<int64_t, int64_t>;

struct Action {
  RowKey row;
  double begin, end;
  char letter;
  int64_t number;
  std::optional<int64_t> update;
};

struct Trace {
  std::vector<Action> actions;
  std::map<RowKey, std::string> names;
};

} // namespace

/// Updates, and what workers push and sum of waves, count themselves.
static bool countsMicrobatches(const Action &action) {
  return !StringRef("UPS").contains(action.letter);
}

/// Reads "F3", and "1F3" with the stage.
static bool parseAction(StringRef name, Action &action) {
  name = name.ltrim("0123456789");
  if (name.empty() || !StringRef("FBIWUEPS").contains(name.front()))
    return false;
  action.letter = name.front();
  return !name.drop_front().getAsInteger(10, action.number);
}

static void addEvent(const json::Object &event, Trace &trace) {
  RowKey row = {event.getInteger("pid").value_or(0),
                event.getInteger("tid").value_or(0)};
  StringRef phase = event.getString("ph").value_or("");
  StringRef name = event.getString("name").value_or("");
  const json::Object *arguments = event.getObject("args");
  if (phase == "M" && name == "thread_name" && arguments) {
    trace.names[row] = arguments->getString("name").value_or("").str();
    return;
  }
  std::optional<double> begin = event.getNumber("ts"),
                        duration = event.getNumber("dur");
  Action action;
  if (phase != "X" || !begin || !duration || !std::isfinite(*begin) ||
      !std::isfinite(*duration) || !parseAction(name, action))
    return;
  action.row = row;
  action.begin = *begin;
  action.end = *begin + *duration;
  if (arguments)
    action.update = arguments->getInteger("update");
  trace.actions.push_back(action);
}

static std::optional<Trace> readTrace(StringRef path, std::string &error) {
  // As JSON, it takes many times its size.
  constexpr uint64_t kMostBytes = 128 << 20;
  uint64_t bytes = 0;
  if (!sys::fs::file_size(path, bytes) && bytes > kMostBytes) {
    error = formatv("{0}: a trace of {1} MiB is not drawn, {2} MiB at most; "
                    "record fewer updates with --trace-steps",
                    path, bytes >> 20, kMostBytes >> 20);
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    error = path.str() + ": " + buffer.getError().message();
    return std::nullopt;
  }
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  const json::Array *events = nullptr;
  if (!value)
    consumeError(value.takeError());
  else if (const json::Object *whole = value->getAsObject())
    events = whole->getArray("traceEvents");
  Trace trace;
  if (events)
    for (const json::Value &event : *events)
      if (const json::Object *object = event.getAsObject())
        addEvent(*object, trace);
  if (trace.actions.empty()) {
    error = path.str() + ": no trace with actions; a file that a program wrote "
                         "with --trace is needed";
    return std::nullopt;
  }
  return trace;
}

/// Returns the device of a row: "stage 0 (device 1)" runs on device 1.
static StringRef getDevice(StringRef rowName) {
  size_t at = rowName.find("device ");
  return at == StringRef::npos ? rowName : rowName.substr(at).rtrim(')');
}

namespace {
/// The part of a trace that is drawn.
class Selection {
public:
  Selection(StringRef path, const Trace &trace) : path(path), trace(trace) {
    for (const Action &action : trace.actions)
      if (action.update)
        known.insert(*action.update);
  }
  /// Returns whether there is something to draw.
  bool select(std::optional<UpdateRange> asked, std::string &error);
  TimelinePicture draw() const;

private:
  std::string getTitle(double bubble) const;

  StringRef path;
  const Trace &trace;
  std::set<int64_t> known;
  std::optional<UpdateRange> updates;
  double begin = 0, end = 0;
};
} // namespace

bool Selection::select(std::optional<UpdateRange> asked, std::string &error) {
  if (asked && (known.empty() || *known.rbegin() < asked->first ||
                *known.begin() > asked->last)) {
    error = known.empty()
                ? formatv("{0}: the trace does not say which update an action "
                          "is for; leave out --updates",
                          path)
                      .str()
                : formatv("--updates={0}:{1}: {2} has the updates {3} to {4}",
                          asked->first, asked->last, path, *known.begin(),
                          *known.rbegin())
                      .str();
    return false;
  }
  updates = asked;
  if (!updates && !known.empty()) {
    int64_t last = *known.rbegin();
    updates = {std::max(last - 1, *known.begin()), last};
  }
  bool any = false;
  for (const Action &action : trace.actions) {
    if (updates && (!action.update || *action.update < updates->first ||
                    *action.update > updates->last))
      continue;
    begin = any ? std::min(begin, action.begin) : action.begin;
    end = any ? std::max(end, action.end) : action.end;
    any = true;
  }
  // Boxes that are thinner than a pixel show nothing.
  constexpr size_t kMostBoxes = 20000;
  size_t boxes = llvm::count_if(trace.actions, [&](const Action &action) {
    return action.end > begin && action.begin < end;
  });
  if (boxes > kMostBoxes) {
    error = formatv("{0}: a timeline of {1} actions is not drawn, {2} at most; "
                    "choose fewer updates with --updates",
                    path, boxes, kMostBoxes);
    return false;
  }
  return true;
}

std::string Selection::getTitle(double bubble) const {
  std::string text = "timeline";
  if (updates && updates->first == updates->last)
    text += formatv(" of update {0}", updates->first);
  else if (updates)
    text += formatv(" of updates {0} to {1}", updates->first, updates->last);
  return text + formatv(": bubble {0:f1} %", 100 * bubble).str();
}

TimelinePicture Selection::draw() const {
  // 1. Microbatches are counted within their update, as plans do.
  std::map<int64_t, int64_t> firstNumbers;
  for (const Action &action : trace.actions)
    if (action.update && countsMicrobatches(action)) {
      auto [found, isNew] =
          firstNumbers.try_emplace(*action.update, action.number);
      found->second = std::min(found->second, action.number);
    }

  // 2. Rows. Times are microseconds, and shown as milliseconds.
  constexpr double kMilli = 1e-3;
  std::map<RowKey, TimelinePicture::Row> rows;
  std::map<std::string, double> busy;
  for (const Action &action : trace.actions) {
    auto name = trace.names.find(action.row);
    auto [row, isNew] = rows.try_emplace(action.row);
    if (isNew)
      row->second.name = name != trace.names.end()
                             ? name->second
                             : "row " + std::to_string(action.row.second);
    double &time = busy[getDevice(row->second.name).str()];
    if (action.end <= begin || action.begin >= end)
      continue;
    TimelinePicture::Box box = {kMilli * std::max(action.begin, begin),
                                kMilli * std::min(action.end, end),
                                action.letter, ""};
    time += box.end - box.start;
    int64_t number = action.number;
    if (action.update)
      number -= firstNumbers[*action.update];
    if (action.update && updates->first < updates->last) {
      box.shade = int(*action.update & 1);
      box.shades = 2;
    }
    if (countsMicrobatches(action))
      box.label = std::to_string(number);
    row->second.boxes.push_back(std::move(box));
  }

  // 3. How much of the time devices were idle.
  double used = 0, span = kMilli * (end - begin);
  for (const auto &[device, time] : busy)
    used += time;
  TimelinePicture picture;
  picture.title =
      getTitle(std::max(0.0, 1 - used / (span * double(busy.size()))));
  for (auto &[key, row] : rows)
    picture.rows.push_back(std::move(row));
  if (updates && updates->first < updates->last)
    picture.note = "darker: every other update";
  picture.darkest = 0.84;
  picture.unit = "ms";
  return picture;
}

std::optional<TimelinePicture>
penstock::readTraceTimeline(StringRef path, std::optional<UpdateRange> updates,
                            std::string &error) {
  std::optional<Trace> trace = readTrace(path, error);
  if (!trace)
    return std::nullopt;
  Selection selection(path, *trace);
  if (!selection.select(updates, error))
    return std::nullopt;
  return selection.draw();
}
