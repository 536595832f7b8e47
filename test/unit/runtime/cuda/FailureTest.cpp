//===- FailureTest.cpp - A kernel that fails on a GPU ---------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ends the process with what is known: the call that reports it, the task, and
// what the driver says.
//===----------------------------------------------------------------------===//

#include "penstock/abi.h"

#include "EmulatedCode.h"
#include "test/unit/runtime/Session.h"

#include <gtest/gtest.h>

namespace {

void waitInABranch(void **) {
  if (ps_emulated_read_ptx_sreg_tid_x() < 2)
    ps_emulated_barrier_cta_sync_aligned_all(0);
}

void trainDevice(penstock_device *device, int64_t first, int64_t updates,
                 int64_t) {
  for (int64_t t = first; t < first + updates; ++t) {
    penstock_mark(device, 0, t);
    if (t == 3)
      penstock_launch(device, 0, nullptr);
  }
}

TEST(Failure, NamesTheKernelAndTheTask) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const penstock_emulated_kernel code[] = {{"branch", waitInABranch, 1, 0}};
  const penstock_image image = {
      PENSTOCK_IMAGE_EMULATED, 0, 0, 0, &code[0], &code[1]};
  const penstock_device_code deviceCode = {1, &image};
  const penstock_kernel kernel = {"branch", {4, 1, 1}, {7, 1, 1}, 0, 0};
  const penstock_device_descriptor device = {64, 64, 1, "cuda", "any", ""};
  const penstock_task task = {"s0.U", 'U', 0, 0};
  const penstock_device_function functions[] = {trainDevice};
  const penstock_schedule schedule = {PENSTOCK_SCHEDULE_TRAIN, 1, 0, functions};
  penstock_program program = penstock::test::makeProgram(device, schedule);
  penstock::test::set(program.task_count, program.tasks, task);
  penstock::test::set(program.kernel_count, program.kernels, kernel);
  program.code = &deviceCode;
  auto train = [&] {
    const penstock_option options[] = {{nullptr, nullptr}};
    penstock_run *run = nullptr;
    penstock_open(&program, options, &run);
    penstock_train(run, 5);
  };
  EXPECT_EXIT(
      train(), testing::ExitedWithCode(PENSTOCK_DEFECT),
      "penstock: device 0 at U4 \\(s0.U\\): cuEventSynchronize failed: "
      "CUDA_ERROR_LAUNCH_FAILED, kernel branch, block \\(3,0,0\\): of 7 "
      "threads, "
      "2 wait at a barrier, 0 in a shuffle whose other lanes do not come, 5 "
      "have ended\n"
      "  device 0: at U4 \\(s0.U\\)\n");
}

} // namespace
