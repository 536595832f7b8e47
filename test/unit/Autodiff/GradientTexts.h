//===- GradientTexts.h - Cases as text --------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the functions that the tests of derivatives differentiate, and checks
// tables of them. Sizes are odd and distinct: a wrong transposition or
// broadcast does not fit.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTTEXTS_H
#define PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTTEXTS_H

#include "GradientHarness.h"

namespace penstock::test {

using Cases = std::vector<GradientCase>;

/// Checks every case and prints how many there were and their largest errors.
void checkAll(const char *rules, const Cases &cases);

/// An operand of a generic: its type's shape and its map's results.
struct Operand {
  std::string shape, map;
};

/// The type of a tensor of f64 of a shape written as in a type: "3x5".
std::string tensor(const std::string &shape);

/// A function of one generic over (i, j) with the given body, which sees %a, %b
/// and %c, yields %r, and writes `out`; `start` is the value it starts from
/// where a dimension is reduced.
std::string generic(const std::vector<Operand> &inputs, const Operand &out,
                    const std::string &body,
                    const std::string &iterators = "\"parallel\", \"parallel\"",
                    const std::string &start = "0.0");

/// A generic of one 3x5 operand, %a.
std::string elementwise(const std::string &body);

/// The body as a case of data, where the output may be reused, and as one of a
/// parameter.
void addUnary(Cases &cases, const std::string &name, const std::string &body,
              double low, double high);

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_AUTODIFF_GRADIENTTEXTS_H
