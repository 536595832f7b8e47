//===- Svg.h - Pictures as SVG ----------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few shapes that charts and timelines consist of. Lengths are pixels, from
// the top left corner of a panel.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_SVG_H
#define PENSTOCK_SUPPORT_SVG_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace penstock {

/// A part of a picture. What is drawn later covers what was drawn before.
class SvgPanel {
public:
  struct Point {
    double x, y;
  };
  enum class Align { Left, Center, Right };

  SvgPanel(double width, double height) : width(width), height(height) {}

  double getWidth() const { return width; }
  double getHeight() const { return height; }
  const std::string &getShapes() const { return shapes; }

  /// `attributes` are further ones, as in XML.
  void drawRectangle(double x, double y, double width, double height,
                     llvm::StringRef fill, llvm::StringRef attributes = "");
  /// Characters that XML cannot hold appear as question marks.
  void drawText(double x, double y, double size, llvm::StringRef text,
                Align align = Align::Left, llvm::StringRef attributes = "");
  void drawLine(Point from, Point to, llvm::StringRef stroke,
                llvm::StringRef attributes = "");
  void drawPath(llvm::ArrayRef<Point> points, bool isClosed,
                llvm::StringRef attributes);
  void endRow() { shapes += "\n"; }

private:
  double width, height;
  std::string shapes;
};

/// Returns about how wide a text is in the fonts of our pictures.
double estimateTextWidth(llvm::StringRef text, double size);

/// Cuts a text that is wider than `width` behind its beginning.
std::string cutText(llvm::StringRef text, double size, double width);

/// Returns the multiples of 1, 2 or 5 times a power of ten from `low` to
/// `high`, `most` of them at most.
std::vector<double> chooseTicks(double low, double high, int most);

/// Returns the text of a tick, as short as it can be.
std::string printTick(double value);

/// Returns the file of panels side by side, aligned at the top. `title` is what
/// a screen reader says of it.
std::string writeSvg(llvm::ArrayRef<SvgPanel> panels, llvm::StringRef title);

} // namespace penstock

#endif // PENSTOCK_SUPPORT_SVG_H
