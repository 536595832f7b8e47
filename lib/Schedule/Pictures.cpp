//===- Pictures.cpp - Schedules as SVG and as traces ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row per device, a box per run, with its microbatch. Later chunks are
// darker; where updates overlap, every other one is.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Simulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;

namespace penstock::schedule {

namespace {

struct Color {
  int red, green, blue;
};

struct Kind {
  char letter;
  StringLiteral name;
  Color color;
};

constexpr Kind kKinds[] = {
    {'F', "forward", {158, 202, 225}},
    {'B', "backward", {161, 217, 155}},
    {'I', "input gradient", {161, 217, 155}},
    {'W', "weight gradient", {253, 190, 110}},
};

} // namespace

/// The kind's color, darker by a step per chunk.
static std::string colorOf(const Kind &kind, int chunk, int chunks) {
  double shade = chunks > 1 ? 1 - 0.38 * chunk / (chunks - 1) : 1;
  auto part = [&](int value) { return int(value * shade); };
  return formatv("rgb({0},{1},{2})", part(kind.color.red),
                 part(kind.color.green), part(kind.color.blue));
}

static const Kind *kindOf(char letter) {
  return llvm::find_if(kKinds,
                       [&](const Kind &kind) { return kind.letter == letter; });
}

std::string drawSvg(const Problem &problem, const Simulation &simulation,
                    StringRef title) {
  // 1. How wide a unit of time is: runs should have room for their numbers.
  double first = 0, last = 0, shortest = 0;
  bool any = false;
  for (ArrayRef<Interval> runs : simulation.runs)
    for (const Interval &run : runs) {
      first = any ? std::min(first, run.start) : run.start;
      last = std::max(last, run.end);
      double length = run.end - run.start;
      if (length > 0)
        shortest = shortest > 0 ? std::min(shortest, length) : length;
      any = true;
    }
  double span = std::max(last - first, 1e-30);
  size_t digits =
      std::to_string(problem.microbatches * problem.updates - 1).size();
  double room = 8.0 + 7.0 * digits;
  double scale =
      std::clamp(room / std::max(shortest, 1e-30), 700 / span, 1900 / span);
  constexpr int kLeft = 78, kTop = 34, kRow = 26, kGap = 4, kLegend = 30;
  int width = kLeft + int(span * scale) + 16;
  int height = kTop + problem.devices * (kRow + kGap) + kLegend;

  // 2. Rows.
  std::string text;
  raw_string_ostream out(text);
  out << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                 "height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                 "font-family=\"Helvetica, Arial, sans-serif\">\n",
                 width, height);
  out << formatv("<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n", width,
                 height);
  out << formatv("<text x=\"10\" y=\"21\" font-size=\"14\">{0}</text>\n",
                 title);
  std::string used;
  for (auto [device, runs] : llvm::enumerate(simulation.runs)) {
    int y = kTop + int(device) * (kRow + kGap);
    out << formatv("<text x=\"10\" y=\"{0}\" font-size=\"12\">device "
                   "{1}</text>\n",
                   y + 17, device);
    out << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2:f1}\" "
                   "height=\"{3}\" fill=\"#f0f0f0\"/>\n",
                   kLeft, y, span * scale, kRow);
    SmallVector<int, 2> stages = problem.stagesOf(device);
    for (const Interval &run : runs) {
      const Kind *kind = kindOf(problem.letterOf(run.task));
      if (kind == std::end(kKinds))
        continue;
      if (!is_contained(used, kind->letter))
        used += kind->letter;
      double x = kLeft + (run.start - first) * scale;
      double wide = (run.end - run.start) * scale;
      int chunk =
          llvm::find(stages, problem.stageOf(run.task)) - stages.begin();
      int shades = stages.size();
      if (!problem.spec.flushes()) {
        chunk = int(run.number / problem.microbatches % 2);
        shades = 2;
      }
      out << formatv("<rect x=\"{0:f1}\" y=\"{1}\" width=\"{2:f1}\" "
                     "height=\"{3}\" fill=\"{4}\" stroke=\"white\" "
                     "stroke-width=\"0.8\"/>",
                     x, y, wide, kRow, colorOf(*kind, chunk, shades));
      std::string number = std::to_string(run.number);
      if (wide >= 7.0 * number.size())
        out << formatv("<text x=\"{0:f1}\" y=\"{1}\" font-size=\"11\" "
                       "text-anchor=\"middle\">{2}</text>",
                       x + wide / 2, y + 17, number);
      out << "\n";
    }
  }

  // 3. What the colors mean.
  double x = kLeft;
  int y = height - 12;
  for (char letter : used) {
    const Kind *kind = kindOf(letter);
    out << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" "
                   "fill=\"{2}\"/><text x=\"{3}\" y=\"{4}\" "
                   "font-size=\"12\">{5}</text>\n",
                   x, y - 10, colorOf(*kind, 0, 1), x + 17, y, kind->name);
    x += 35 + 7.0 * kind->name.size();
  }
  if (problem.spec.chunks() > 1 || problem.spec.replicas() > 1)
    out << formatv("<text x=\"{0}\" y=\"{1}\" font-size=\"12\">darker: a later "
                   "stage of the device</text>\n",
                   x, y);
  if (!problem.spec.flushes())
    out << formatv("<text x=\"{0}\" y=\"{1}\" font-size=\"12\">darker: every "
                   "other update</text>\n",
                   x, y);
  out << "</svg>\n";
  return text;
}

std::string writeTrace(const Problem &problem, const Simulation &simulation) {
  std::string text;
  raw_string_ostream out(text);
  json::OStream stream(out, 1);
  stream.object([&] {
    stream.attributeArray("traceEvents", [&] {
      for (auto [device, runs] : llvm::enumerate(simulation.runs)) {
        stream.object([&] {
          stream.attribute("name", "thread_name");
          stream.attribute("ph", "M");
          stream.attribute("pid", 0);
          stream.attribute("tid", int64_t(device));
          stream.attributeObject("args", [&] {
            stream.attribute("name", "device " + std::to_string(device));
          });
        });
        for (const Interval &run : runs) {
          const Task &task = problem.model.tasks[run.task];
          if (task.perUpdate())
            continue;
          stream.object([&] {
            stream.attribute("name", std::to_string(task.stage) + task.letter +
                                         std::to_string(run.number));
            stream.attribute("cat", std::string(1, task.letter));
            stream.attribute("ph", "X");
            stream.attribute("pid", 0);
            stream.attribute("tid", int64_t(device));
            stream.attribute("ts", run.start);
            stream.attribute("dur", run.end - run.start);
          });
        }
      }
    });
  });
  out << "\n";
  return text;
}

} // namespace penstock::schedule
