//===- Pictures.cpp - Schedules as SVG and as traces ----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row per device, a box per run, with its microbatch. Later chunks are
// darker; where updates overlap, every other one is.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/Simulator.h"
#include "penstock/Schedule/TimelinePicture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace penstock::schedule {

std::string drawSvg(const Problem &problem, const Simulation &simulation,
                    StringRef title) {
  TimelinePicture picture;
  picture.title = title.str();
  for (auto [device, runs] : llvm::enumerate(simulation.runs)) {
    TimelinePicture::Row &row = picture.rows.emplace_back();
    row.name = "device " + std::to_string(device);
    SmallVector<int, 2> stages = problem.getStages(device);
    for (const Interval &run : runs) {
      TimelinePicture::Box box = {run.start, run.end,
                                  problem.getLetter(run.task),
                                  std::to_string(run.number)};
      if (problem.spec.flushes()) {
        box.shade =
            llvm::find(stages, problem.getStage(run.task)) - stages.begin();
        box.shades = stages.size();
      } else {
        box.shade = int(run.number / problem.microbatches % 2);
        box.shades = 2;
      }
      row.boxes.push_back(std::move(box));
    }
  }
  if (!problem.spec.flushes())
    picture.note = "darker: every other update";
  else if (problem.spec.chunks() > 1 || problem.spec.replicas() > 1)
    picture.note = "darker: a later stage of the device";
  return writeSvg(drawTimelinePicture(picture), title);
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
