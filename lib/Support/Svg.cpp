//===- Svg.cpp - Pictures as SVG ------------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Svg.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/Svg.h"
#include "penstock/one_line.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace penstock;

static std::string escape(StringRef text) {
  std::string whole = json::isUTF8(text) ? text.str() : json::fixUTF8(text);
  std::string escaped;
  for (char c : whole) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return escaped;
}

/// Tenths of a pixel, without the zero of whole ones.
static std::string printLength(double length) {
  std::string text = formatv("{0:f1}", length);
  StringRef shown(text);
  shown.consume_back(".0");
  return shown == "-0" ? "0" : shown.str();
}

static std::string prefixSpace(StringRef attributes) {
  return attributes.empty() ? "" : (" " + attributes).str();
}

void SvgPanel::drawRectangle(double x, double y, double width, double height,
                             StringRef fill, StringRef attributes) {
  shapes += formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" "
                    "fill=\"{4}\"{5}/>",
                    printLength(x), printLength(y), printLength(width),
                    printLength(height), fill, prefixSpace(attributes));
}

void SvgPanel::drawText(double x, double y, double size, StringRef text,
                        Align align, StringRef attributes) {
  StringRef anchor = align == Align::Left     ? ""
                     : align == Align::Center ? " text-anchor=\"middle\""
                                              : " text-anchor=\"end\"";
  shapes += formatv("<text x=\"{0}\" y=\"{1}\" font-size=\"{2}\"{3}{4}>{5}"
                    "</text>",
                    printLength(x), printLength(y), printLength(size), anchor,
                    prefixSpace(attributes), escape(text));
}

void SvgPanel::drawLine(Point from, Point to, StringRef stroke,
                        StringRef attributes) {
  shapes += formatv("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{3}\" "
                    "stroke=\"{4}\"{5}/>",
                    printLength(from.x), printLength(from.y), printLength(to.x),
                    printLength(to.y), stroke, prefixSpace(attributes));
}

void SvgPanel::drawPath(ArrayRef<Point> points, bool isClosed,
                        StringRef attributes) {
  if (points.empty())
    return;
  shapes += "<path d=\"M";
  for (auto [x, y] : points)
    shapes += formatv(" {0},{1}", printLength(x), printLength(y));
  shapes +=
      formatv("{0}\"{1}/>", isClosed ? " Z" : "", prefixSpace(attributes));
}

double penstock::estimateTextWidth(StringRef text, double size) {
  // Of Helvetica and Arial, between words and digits. A character of several
  // bytes counts as one.
  size_t characters = llvm::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
  return 0.56 * size * double(characters);
}

std::string penstock::cutText(StringRef text, double size, double width) {
  if (estimateTextWidth(text, size) <= width)
    return text.str();
  size_t length = text.size();
  while (length > 0 && estimateTextWidth(text.take_front(length), size) +
                               estimateTextWidth("...", size) >
                           width)
    length = findCut(text, length - 1);
  return text.take_front(length).str() + "...";
}

std::vector<double> penstock::chooseTicks(double low, double high, int most) {
  if (!(high > low) || most < 1)
    return {low};
  double power = std::pow(10, std::floor(std::log10((high - low) / most)));
  constexpr double kRoundoff = 1e-9;
  for (double factor : {1, 2, 5, 10, 20, 50}) {
    double step = factor * power;
    double first = std::ceil(low / step - kRoundoff);
    double last = std::floor(high / step + kRoundoff);
    if (last - first + 1 > most)
      continue;
    std::vector<double> ticks;
    for (double i = first; i <= last; ++i)
      ticks.push_back(i == 0 ? 0 : i * step);
    return ticks;
  }
  return {low};
}

std::string penstock::printTick(double value) {
  std::string text;
  raw_string_ostream(text) << format("%g", value);
  return text;
}

std::string penstock::writeSvg(ArrayRef<SvgPanel> panels, StringRef title) {
  double width = 0, height = 0;
  for (const SvgPanel &panel : panels) {
    width += panel.getWidth();
    height = std::max(height, panel.getHeight());
  }
  std::string text = formatv(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      printLength(width), printLength(height), escape(title));
  double x = 0;
  for (const SvgPanel &panel : panels) {
    text +=
        x > 0 ? formatv("<g transform=\"translate({0} 0)\">\n", printLength(x))
                    .str()
              : "<g>\n";
    text += panel.getShapes() + "</g>\n";
    x += panel.getWidth();
  }
  return text + "</svg>\n";
}
