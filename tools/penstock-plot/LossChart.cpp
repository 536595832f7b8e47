//===- LossChart.cpp - Losses over updates or time ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See LossChart.h.
//===----------------------------------------------------------------------===//

#include "LossChart.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace penstock;
using Point = SvgPanel::Point;

// Okabe and Ito (2008), without yellow, which is too light for a line.
constexpr StringLiteral kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#000000", "#56b4e9", "#e69f00"};
constexpr StringLiteral kDashes[] = {"", "7 3", "2 3", "8 3 2 3"};
constexpr size_t kShapes = 7;
static_assert(std::size(kColors) == kShapes &&
              kShapes * std::size(kDashes) == kMostLogs);

namespace {

/// How a line looks.
struct LineStyle {
  StringRef color, dashes;
  size_t shape;

  explicit LineStyle(size_t index)
      : color(kColors[index % kShapes]), dashes(kDashes[index / kShapes]),
        shape(index % kShapes) {}
  std::string getStroke(double width, double opacity = 1) const {
    std::string text = formatv("fill=\"none\" stroke=\"{0}\" "
                               "stroke-width=\"{1}\" stroke-linejoin=\"round\"",
                               color, width);
    if (!dashes.empty())
      text += (" stroke-dasharray=\"" + dashes + "\"").str();
    if (opacity < 1)
      text += formatv(" stroke-opacity=\"{0}\"", opacity);
    return text;
  }
};

/// Points without a gap.
using Run = std::vector<Point>;

class Chart {
public:
  Chart(ArrayRef<LossLog> logs, const ChartOptions &options)
      : logs(logs), options(options), panel(options.width, options.height) {}
  SvgPanel draw();

private:
  struct Scale {
    double low = 0, high = 1;
    double begin = 0, end = 0; // pixels
    bool isLogarithmic = false;

    double map(double value) const {
      auto position = [&](double v) {
        return isLogarithmic ? std::log10(v) : v;
      };
      return begin + (position(value) - position(low)) /
                         (position(high) - position(low)) * (end - begin);
    }
  };

  double getX(const LossLog::Point &point) const {
    return options.overSeconds ? point.seconds : point.update;
  }
  bool isDrawn(double loss) const {
    return std::isfinite(loss) && loss <= options.mostLoss &&
           (!options.isLogarithmic || loss > 0);
  }
  std::vector<LossLog::Point> average(ArrayRef<LossLog::Point> points) const;
  std::vector<Run> getRuns(ArrayRef<LossLog::Point> points) const;
  void chooseScales();
  void drawAxes();
  double drawLegend();
  void drawMarker(Point center, const LineStyle &style, bool isFilled);
  void drawLog(size_t index);

  ArrayRef<LossLog> logs;
  const ChartOptions &options;
  SvgPanel panel;
  Scale x, y;
  std::vector<double> ticksX, ticksY;
};

} // namespace

/// Means of the last `smooth` updates that have a number.
std::vector<LossLog::Point>
Chart::average(ArrayRef<LossLog::Point> points) const {
  std::vector<LossLog::Point> means(points.begin(), points.end());
  for (size_t i = 0; i < points.size(); ++i) {
    size_t first = i + 1 - std::min<size_t>(i + 1, options.smooth);
    double sum = 0, count = 0;
    for (const LossLog::Point &point : points.slice(first, i + 1 - first))
      if (std::isfinite(point.loss)) {
        sum += point.loss;
        ++count;
      }
    means[i].loss = std::isfinite(points[i].loss) ? sum / count : NAN;
  }
  return means;
}

/// Pixels of what can be drawn. A column of pixels shows where the line enters
/// and leaves it, its lowest and its highest point.
std::vector<Run> Chart::getRuns(ArrayRef<LossLog::Point> points) const {
  std::vector<Run> runs;
  Run column;
  auto endColumn = [&] {
    if (column.empty())
      return;
    auto [low, high] =
        std::minmax_element(column.begin(), column.end(),
                            [](Point a, Point b) { return a.y < b.y; });
    bool isLowFirst = low < high;
    Point inner[] = {isLowFirst ? *low : *high, isLowFirst ? *high : *low};
    Run &run = runs.back();
    run.push_back(column.front());
    if (column.size() > 2)
      run.insert(run.end(), std::begin(inner), std::end(inner));
    if (column.size() > 1)
      run.push_back(column.back());
    column.clear();
  };
  bool isOpen = false;
  for (const LossLog::Point &point : points) {
    if (!isDrawn(point.loss)) {
      endColumn();
      isOpen = false;
      continue;
    }
    if (!isOpen) {
      endColumn();
      runs.emplace_back();
    }
    isOpen = true;
    Point pixel = {x.map(getX(point)), y.map(point.loss)};
    if (!column.empty() && std::floor(column.back().x) != std::floor(pixel.x))
      endColumn();
    column.push_back(pixel);
  }
  endColumn();
  return runs;
}

void Chart::chooseScales() {
  bool any = false;
  x.low = 0;
  x.high = 0;
  for (const LossLog &log : logs)
    for (ArrayRef<LossLog::Point> points :
         {ArrayRef(log.updates), ArrayRef(log.evaluations)})
      for (const LossLog::Point &point : points) {
        x.high = std::max(x.high, getX(point));
        if (!isDrawn(point.loss))
          continue;
        y.low = any ? std::min(y.low, point.loss) : point.loss;
        y.high = any ? std::max(y.high, point.loss) : point.loss;
        any = true;
      }
  if (x.high <= x.low)
    x.high = x.low + 1;
  constexpr int kTicksX = 7, kTicksY = 7;
  ticksX = chooseTicks(x.low, x.high, kTicksX);
  if (!any)
    y.low = options.isLogarithmic ? 0.1 : 0, y.high = 1;
  y.isLogarithmic = options.isLogarithmic;
  if (y.isLogarithmic) {
    // Powers of ten, and twos and fives where there are few; round numbers
    // within one.
    double decades = std::log10(y.high) - std::log10(y.low);
    if (decades < 1)
      ticksY = chooseTicks(y.low / 1.1, y.high * 1.1, kTicksY + 2);
    else
      for (double power = std::floor(std::log10(y.low));
           power <= std::ceil(std::log10(y.high)); ++power)
        for (double factor : {1, 2, 5})
          if (factor == 1 || decades < 3)
            ticksY.push_back(factor * std::pow(10, power));
    auto below = llvm::upper_bound(ticksY, y.low);
    if (below != ticksY.begin())
      ticksY.erase(ticksY.begin(), below - 1);
    ticksY.erase(std::next(std::min(llvm::lower_bound(ticksY, y.high),
                                    ticksY.end() - 1)),
                 ticksY.end());
    y.low = std::min(y.low, ticksY.front());
    y.high = std::max(y.high, ticksY.back());
  } else {
    // Up to the next tick on both sides.
    if (y.high <= y.low) {
      double half = y.low == 0 ? 1 : std::abs(y.low) / 10;
      y.low -= half;
      y.high += half;
    }
    ticksY = chooseTicks(y.low, y.high, kTicksY);
    double step = ticksY.size() > 1 ? ticksY[1] - ticksY[0] : 0;
    if (step > 0) {
      y.low = std::floor(y.low / step + 1e-9) * step;
      y.high = std::ceil(y.high / step - 1e-9) * step;
      ticksY = chooseTicks(y.low, y.high, kTicksY + 2);
    }
  }
  if (y.high <= y.low)
    y.high = y.low * 10;
}

void Chart::drawMarker(Point center, const LineStyle &style, bool isFilled) {
  auto [cx, cy] = center;
  constexpr double kSize = 3.6;
  auto polygon = [&](ArrayRef<Point> unit, bool isClosed = true) {
    std::vector<Point> points;
    for (auto [ux, uy] : unit)
      points.push_back({cx + kSize * ux, cy + kSize * uy});
    std::string look =
        formatv("fill=\"{0}\" stroke=\"{1}\" stroke-width=\"1.4\"",
                !isClosed  ? "none"
                : isFilled ? style.color.str()
                           : "white",
                style.color);
    panel.drawPath(points, isClosed, look);
  };
  switch (style.shape) {
  case 0: { // a circle, nearly
    std::vector<Point> points;
    for (int i = 0; i < 12; ++i)
      points.push_back({std::cos(i * M_PI / 6), std::sin(i * M_PI / 6)});
    return polygon(points);
  }
  case 1:
    return polygon({{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}});
  case 2:
    return polygon({{0, -1.2}, {1.1, .8}, {-1.1, .8}});
  case 3:
    return polygon({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
  case 4:
    return polygon({{0, 1.2}, {1.1, -.8}, {-1.1, -.8}});
  case 5:
    polygon({{-1, -1}, {1, 1}}, false);
    return polygon({{-1, 1}, {1, -1}}, false);
  default:
    polygon({{-1.3, 0}, {1.3, 0}}, false);
    return polygon({{0, -1.3}, {0, 1.3}}, false);
  }
}

/// Below the title, in as many lines as it needs. Returns where it ends.
double Chart::drawLegend() {
  constexpr double kLeft = 14, kSample = 34, kLine = 18, kFont = 12;
  double left = kLeft, top = 40;
  auto addEntry = [&](StringRef whole, auto drawSample) {
    std::string name =
        cutText(whole, kFont, options.width - 2 * kLeft - kSample - 10);
    double width = kSample + 6 + estimateTextWidth(name, kFont) + 18;
    if (left > kLeft && left + width > options.width) {
      left = kLeft;
      top += kLine;
    }
    drawSample(Point{left, top - 4});
    panel.drawText(left + kSample + 6, top, kFont, name);
    panel.endRow();
    left += width;
  };
  for (auto [index, log] : enumerate(logs)) {
    LineStyle style(index);
    if (!log.updates.empty())
      addEntry(log.name, [&](Point begin) {
        panel.drawPath({begin, {begin.x + kSample, begin.y}}, false,
                       style.getStroke(2));
        if (logs.size() > 1)
          drawMarker({begin.x + kSample / 2, begin.y}, style, true);
      });
    if (!log.evaluations.empty())
      addEntry(log.name + ", evaluation", [&](Point begin) {
        drawMarker({begin.x + kSample / 2, begin.y}, style, false);
      });
  }
  return top;
}

void Chart::drawAxes() {
  for (double tick : ticksY) {
    double at = y.map(tick);
    panel.drawLine({x.begin, at}, {x.end, at}, "#ddd");
    panel.drawText(x.begin - 7, at + 4, 11, printTick(tick),
                   SvgPanel::Align::Right);
  }
  panel.endRow();
  for (double tick : ticksX) {
    double at = x.map(tick);
    panel.drawLine({at, y.begin}, {at, y.begin + 4}, "#666");
    panel.drawText(at, y.begin + 17, 11, printTick(tick),
                   SvgPanel::Align::Center);
  }
  panel.drawLine({x.begin, y.begin}, {x.end, y.begin}, "#666");
  panel.drawLine({x.begin, y.begin}, {x.begin, y.end}, "#666");
  panel.drawText((x.begin + x.end) / 2, y.begin + 35, 12,
                 options.overSeconds ? "seconds" : "update",
                 SvgPanel::Align::Center);
  double middle = (y.begin + y.end) / 2;
  panel.drawText(
      15, middle, 12, "loss", SvgPanel::Align::Center,
      formatv("transform=\"rotate(-90 15 {0})\"", int(middle)).str());
  panel.endRow();
}

void Chart::drawLog(size_t index) {
  const LossLog &log = logs[index];
  LineStyle style(index);
  // 1. Lines, and what was averaged behind them.
  if (options.smooth > 1)
    for (const Run &run : getRuns(log.updates))
      panel.drawPath(run, false, style.getStroke(1, 0.3));
  std::vector<LossLog::Point> line = average(log.updates);
  for (const Run &run : getRuns(line)) {
    panel.drawPath(run, false, style.getStroke(2));
    // A path of one point is nothing.
    if (run.size() == 1 && logs.size() == 1)
      drawMarker(run.front(), style, true);
  }
  panel.endRow();

  // 2. Shapes, not at the same updates for all lines.
  if (logs.size() > 1) {
    constexpr double kDistance = 90;
    double next = x.begin + kDistance * (0.3 + double(index) / logs.size());
    const Point *last = nullptr;
    std::vector<Run> runs = getRuns(line);
    size_t drawn = 0;
    for (const Run &run : runs)
      for (const Point &point : run) {
        last = &point;
        if (point.x < next)
          continue;
        drawMarker(point, style, true);
        ++drawn;
        next = point.x + kDistance;
      }
    if (last && drawn == 0)
      drawMarker(*last, style, true);
  }

  // 3. Evaluations.
  for (const LossLog::Point &point : log.evaluations)
    if (isDrawn(point.loss))
      drawMarker({x.map(getX(point)), y.map(point.loss)}, style, false);
  panel.endRow();
}

SvgPanel Chart::draw() {
  panel.drawText(14, 21, 14, cutText(options.title, 14, options.width - 20));
  panel.endRow();
  double top = drawLegend();
  chooseScales();
  double wide = 0;
  for (double tick : ticksY)
    wide = std::max(wide, estimateTextWidth(printTick(tick), 11));
  x.begin = 34 + wide;
  x.end = options.width - 22;
  y.begin = options.height - 44;
  y.end = std::min(top + 16, y.begin - 40);
  drawAxes();
  for (size_t i = 0; i < logs.size(); ++i)
    drawLog(i);
  return panel;
}

SvgPanel penstock::drawLossChart(ArrayRef<LossLog> logs,
                                 const ChartOptions &options) {
  return Chart(logs, options).draw();
}
