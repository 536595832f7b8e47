//===- Session.h - Programs by hand, and their runs -------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an embedding does with a program: options by name, a code, a sentence.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_TEST_UNIT_RUNTIME_SESSION_H
#define PENSTOCK_TEST_UNIT_RUNTIME_SESSION_H

#include "penstock/abi.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

/// Sets an array of the ABI, and how many it has: to a range, or to one object.
template <typename T, typename Values>
void set(uint32_t &count, const T *&array, const Values &values) {
  if constexpr (requires { std::data(values); }) {
    count = static_cast<uint32_t>(std::size(values));
    array = std::data(values);
  } else {
    count = 1;
    array = &values;
  }
}

/// Returns a program of one stage for each device, with samples one by one.
template <typename Devices, typename Schedules>
penstock_program makeProgram(const Devices &devices,
                             const Schedules &schedules) {
  penstock_program program = {};
  program.abi_version = PENSTOCK_ABI_VERSION;
  program.microbatch_size = 1;
  set(program.device_count, program.devices, devices);
  set(program.schedule_count, program.schedules, schedules);
  program.stage_count = program.device_count;
  return program;
}

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
