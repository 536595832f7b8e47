//===- TimelinePicture.h - A row per device, a box per action ---*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The picture of a simulated schedule, and of the trace of a run.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SCHEDULE_TIMELINEPICTURE_H
#define PENSTOCK_SCHEDULE_TIMELINEPICTURE_H

#include "penstock/Support/Svg.h"

#include <optional>
#include <string>
#include <vector>

namespace penstock::schedule {

struct TimelinePicture {
  struct Box {
    double start, end;
    char letter; ///< F, B, I, W, U, P, S or E; others are not drawn
    /// Written into the box where it has room.
    std::string label;
    /// From 0, the lightest, to shades - 1.
    int shade = 0, shades = 1;
  };
  struct Row {
    std::string name;
    std::vector<Box> boxes;
  };

  std::string title;
  std::vector<Row> rows;
  /// Stands behind the legend.
  std::string note;
  /// Brightness of the darkest shade.
  double darkest = 0.62;
  /// Stands below the time axis, as "ms"; without it there is no axis.
  std::string unit;
  /// Width and height of the whole. By default they follow from the boxes: the
  /// shortest has room for its label, within bounds.
  std::optional<double> width, height;
};

/// Kinds of boxes differ by color, and without colors by a stripe.
SvgPanel drawTimelinePicture(const TimelinePicture &picture);

} // namespace penstock::schedule

#endif // PENSTOCK_SCHEDULE_TIMELINEPICTURE_H
