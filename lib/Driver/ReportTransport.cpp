//===- ReportTransport.cpp - What messages between processes need ---------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of channels move between the arenas; sums over processes have
// buffers of their own. How many processes a program runs as is known when it
// starts, so they are predicted for every number.
//===----------------------------------------------------------------------===//

#include "penstock/Driver/Report.h"

#include "dialects/Pipeline/Summands.h"
#include "penstock/Support/ByteSize.h"
#include "penstock/sum_share.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

/// The process of each device, as `Job::place` divides them.
static std::vector<int> divideDevices(int64_t devices, int64_t processes) {
  std::vector<int> result(devices);
  for (int64_t process = 0; process < processes; ++process)
    for (int64_t device = process * devices / processes,
                 end = (process + 1) * devices / processes;
         device < end; ++device)
      result[device] = static_cast<int>(process);
  return result;
}

static std::vector<SumValues> getValues(ModuleOp module, GroupOp group) {
  std::vector<SumValues> values;
  for (VariableOp variable : listSummedVariables(module, group)) {
    RankedTensorType type = variable.getTensorType();
    values.push_back({static_cast<uint64_t>(getByteSize(type)),
                      type.getElementTypeBitWidth() / 8});
  }
  return values;
}

void Report::collectTransport(ModuleOp module) {
  transport.clear();
  auto devices = module.getOps<DeviceOp>();
  int64_t count = std::distance(devices.begin(), devices.end());
  for (int64_t processes = 2; processes <= count; ++processes) {
    std::vector<int> processOf = divideDevices(count, processes);
    std::vector<int64_t> bytes(processes);
    for (GroupOp group : module.getOps<GroupOp>()) {
      std::vector<SumSummand> summands;
      for (const Summand &summand : listSummands(module, group))
        summands.push_back(
            {processOf[summand.device],
             summands.empty() || summand.kind != Summand::Kind::Receives,
             summand.kind != Summand::Kind::Resets});
      for (auto [process, sum] : llvm::enumerate(bytes))
        sum += static_cast<int64_t>(countSumBytes(
            getValues(module, group), summands, static_cast<int>(process)));
    }
    if (llvm::any_of(bytes, [](int64_t each) { return each > 0; }))
      transport.push_back(std::move(bytes));
  }
}
