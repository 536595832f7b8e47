//===- TimelinePicture.cpp - A row per device, a box per action -----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See TimelinePicture.h.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/TimelinePicture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace llvm;
using namespace penstock;
using namespace penstock::schedule;

namespace {

struct Color {
  int red, green, blue;

  std::string darken(double factor) const {
    return formatv("rgb({0},{1},{2})", int(red * factor), int(green * factor),
                   int(blue * factor));
  }
};

enum class Stripe { None, Bottom, Top, Both };

struct Kind {
  char letter;
  StringLiteral name;
  Color color;
  Stripe stripe;
};

constexpr Kind kKinds[] = {
    {'F', "forward", {158, 202, 225}, Stripe::None},
    {'B', "backward", {161, 217, 155}, Stripe::Bottom},
    {'I', "input gradient", {161, 217, 155}, Stripe::Bottom},
    {'W', "weight gradient", {253, 190, 110}, Stripe::Top},
    {'U', "update", {120, 94, 150}, Stripe::None},
    {'P', "push of a wave", {231, 138, 195}, Stripe::Top},
    {'S', "sum of waves", {229, 196, 148}, Stripe::Both},
    {'E', "evaluation", {204, 204, 204}, Stripe::Both},
};

constexpr double kTop = 34, kGap = 4, kRight = 16, kFont = 12, kSwatch = 12;

/// Draws one timeline.
class Drawing {
public:
  explicit Drawing(const TimelinePicture &picture);
  SvgPanel draw();

private:
  void drawRow(size_t index);
  void drawAxis();
  void drawLegend();
  void drawBox(double x, double y, double width, double height,
               const Kind &kind, double shade);
  double getX(double time) const { return left + (time - first) * scale; }
  double getRowsEnd() const {
    return kTop + double(picture.rows.size()) * (row + kGap);
  }

  const TimelinePicture &picture;
  double first = 0, last = 0; // times
  double left = 0, row = 26, scale = 1, axis = 0;
  std::string used;
  SvgPanel panel{0, 0};
};

} // namespace

Drawing::Drawing(const TimelinePicture &picture) : picture(picture) {
  // 1. What there is to draw.
  double shortest = 0;
  size_t longestLabel = 1;
  bool any = false;
  for (const TimelinePicture::Row &line : picture.rows) {
    left = std::max(left, estimateTextWidth(line.name, kFont));
    for (const TimelinePicture::Box &box : line.boxes) {
      first = any ? std::min(first, box.start) : box.start;
      last = std::max(last, box.end);
      double length = box.end - box.start;
      if (length > 0)
        shortest = shortest > 0 ? std::min(shortest, length) : length;
      longestLabel = std::max(longestLabel, box.label.size());
      any = true;
    }
  }
  left = std::max(78.0, left + 20);
  axis = picture.unit.empty() ? 0 : 36;

  // 2. How large.
  double span = std::max(last - first, 1e-30);
  double room = 8.0 + 7.0 * double(longestLabel);
  scale = picture.width ? (*picture.width - left - kRight) / span
                        : std::clamp(room / std::max(shortest, 1e-30),
                                     700 / span, 1900 / span);
  constexpr double kLegend = 30, kLowest = 14, kHighest = 64;
  double rows = double(std::max<size_t>(picture.rows.size(), 1));
  if (picture.height)
    row = std::clamp((*picture.height - kTop - kLegend - axis) / rows - kGap,
                     kLowest, kHighest);
  panel = SvgPanel(
      left + double(int(span * scale)) + kRight,
      std::max(getRowsEnd() + kLegend + axis, picture.height.value_or(0)));
}

void Drawing::drawBox(double x, double y, double width, double height,
                      const Kind &kind, double shade) {
  panel.drawRectangle(x, y, width, height, kind.color.darken(shade),
                      "stroke=\"white\" stroke-width=\"0.8\"");
  // Thin enough to leave the label alone.
  double thick = std::min(3.0, height / 4);
  std::string dark = kind.color.darken(0.45 * shade);
  if (kind.stripe == Stripe::Bottom || kind.stripe == Stripe::Both)
    panel.drawRectangle(x, y + height - thick, width, thick, dark);
  if (kind.stripe == Stripe::Top || kind.stripe == Stripe::Both)
    panel.drawRectangle(x, y, width, thick, dark);
}

void Drawing::drawRow(size_t index) {
  const TimelinePicture::Row &line = picture.rows[index];
  double y = kTop + double(index) * (row + kGap), middle = y + row / 2 + 4;
  panel.drawText(10, middle, kFont, line.name);
  panel.drawRectangle(left, y, (last - first) * scale, row, "#f0f0f0");
  panel.endRow();
  for (const TimelinePicture::Box &box : line.boxes) {
    const Kind *kind = llvm::find_if(
        kKinds, [&](const Kind &kind) { return kind.letter == box.letter; });
    if (kind == std::end(kKinds) || box.end <= box.start)
      continue;
    if (!is_contained(used, kind->letter))
      used += kind->letter;
    double wide = (box.end - box.start) * scale;
    double shade = 1;
    if (box.shades > 1)
      shade -= (1 - picture.darkest) * box.shade / (box.shades - 1);
    drawBox(getX(box.start), y, wide, row, *kind, shade);
    if (wide >= 7.0 * double(box.label.size()))
      panel.drawText(getX(box.start) + wide / 2, middle, 11, box.label,
                     SvgPanel::Align::Center);
    panel.endRow();
  }
}

void Drawing::drawAxis() {
  double y = getRowsEnd() + 2;
  panel.drawLine({left, y}, {getX(last), y}, "#666");
  for (double tick : chooseTicks(0, last - first, 8)) {
    double x = getX(first + tick);
    panel.drawLine({x, y}, {x, y + 4}, "#666");
    panel.drawText(x, y + 16, 11, printTick(tick), SvgPanel::Align::Center);
  }
  panel.drawText(getX(last), y + 30, 11, picture.unit, SvgPanel::Align::Right);
  panel.endRow();
}

void Drawing::drawLegend() {
  double x = left, y = getRowsEnd() + axis + 18;
  for (char letter : used) {
    const Kind *kind = llvm::find_if(
        kKinds, [&](const Kind &kind) { return kind.letter == letter; });
    drawBox(x, y - 10, kSwatch, kSwatch, *kind, 1);
    panel.drawText(x + 17, y, kFont, kind->name);
    panel.endRow();
    x += 35 + 7.0 * double(kind->name.size());
  }
  if (!picture.note.empty()) {
    panel.drawText(x, y, kFont, picture.note);
    panel.endRow();
  }
}

SvgPanel Drawing::draw() {
  panel.drawText(10, 21, 14, cutText(picture.title, 14, panel.getWidth() - 10));
  panel.endRow();
  for (size_t i = 0; i < picture.rows.size(); ++i)
    drawRow(i);
  if (axis > 0)
    drawAxis();
  drawLegend();
  return panel;
}

SvgPanel schedule::drawTimelinePicture(const TimelinePicture &picture) {
  return Drawing(picture).draw();
}
