//===- Session.h - A run that is closed at the end --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an embedding does with a program: options by name, a code, a sentence.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_SESSION_H
#define PENSTOCK_TEST_UNIT_RUNTIME_SESSION_H

#include "penstock/abi.h"

#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

/// Names and values; an empty value stands for none.
using Options = std::vector<std::pair<std::string, std::string>>;

class Session {
public:
  Session(const penstock_program *program, const Options &options) {
    std::vector<penstock_option> list;
    for (const auto &[name, value] : options)
      list.push_back({name.c_str(), value.empty() ? nullptr : value.c_str()});
    list.push_back({});
    code = penstock_open(program, list.data(), &run);
  }
  ~Session() { penstock_close(run); }
  std::string error() const { return penstock_error(run); }

  penstock_run *run = nullptr;
  int code;
};

} // namespace penstock::test

#endif // PENSTOCK_TEST_UNIT_RUNTIME_SESSION_H
