//===- TargetOptions.cpp - What penstockc compiles for --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of devices, and what the code of each is for.
//===----------------------------------------------------------------------===//

#include "OptionChecker.h"

#include "dialects/Cuda/Cuda.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Methods/Method.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace penstock;

bool OptionChecker::checkTarget() {
  // 1. The kind of each device.
  std::vector<std::string> names = getTargetNames();
  std::string known = llvm::join(names, ", ");
  options.target = flags.target;
  if (!is_contained(names, options.target))
    return fail("--target=" + options.target +
                ": unknown target; targets are " + known);
  bool usesCpu = options.target == "cpu", usesCuda = options.target == "cuda";
  if (flags.deviceTargets.getNumOccurrences()) {
    if (flags.target.getNumOccurrences())
      return fail("--device-targets says what every device is; leave --target "
                  "out");
    if (options.choosesStages)
      return fail("--device-targets: --stages=auto plans for devices of one "
                  "kind; say --stages=N");
    usesCpu = usesCuda = false;
    for (StringRef kind : flags.deviceTargets) {
      if (!is_contained(names, kind))
        return fail("--device-targets: unknown target '" + kind +
                    "'; targets are " + known);
      options.deviceTargets.push_back(kind.str());
      usesCpu |= kind == "cpu";
      usesCuda |= kind == "cuda";
    }
  }

  if (options.profile && !all_equal(options.deviceTargets))
    return fail("--profile measures devices of one kind; leave it out, or name "
                "one kind by --device-targets");

  // 2. What only one kind knows.
  if (!is_contained({"f32", "tf32", "bf16"}, options.precision))
    return fail("--precision=" + options.precision +
                ": unknown precision; there are f32, bf16 and, on GPUs, tf32");
  if (options.precision == "bf16" &&
      StringRef(flags.method).starts_with("i-timeprest"))
    return fail("--precision=bf16: --method=i-timeprest blends weights of "
                "several versions, of which only rounded ones are kept; use "
                "--method=v-timeprest, or --precision=f32");
  if (options.precision == "bf16" && !options.infer &&
      !Optimizer::create(options.optimizer)->isElementwise())
    return fail("--precision=bf16: --optimizer=" + options.optimizer.getName() +
                " updates whole tensors, and keeps no f32 weights beside "
                "rounded ones; use --precision=f32, or another optimizer");
  if (!usesCuda && options.precision == "tf32")
    return fail("--precision=tf32 is for CUDA devices: it needs --target=cuda, "
                "or cuda in --device-targets; CPUs have --precision=f32 and "
                "--precision=bf16");
  if (!usesCuda) {
    for (const cl::Option *flag :
         {static_cast<cl::Option *>(&flags.gpuArch),
          static_cast<cl::Option *>(&flags.libraryWorkspace),
          static_cast<cl::Option *>(&flags.gpuKernels),
          static_cast<cl::Option *>(&flags.cudaPath),
          static_cast<cl::Option *>(&flags.ptxas)})
      if (flag->getNumOccurrences())
        return fail("--" + flag->ArgStr +
                    " is for CUDA devices: it needs --target=cuda, or cuda in "
                    "--device-targets");
    if (options.product == Product::KernelCode)
      return fail("--emit=ptx is for CUDA devices: it needs --target=cuda, or "
                  "cuda in --device-targets");
    return true;
  }
  if (!usesCpu && flags.threads.getNumOccurrences())
    return fail("--threads is for CPU devices, and there are none");
  StringSet<> seen;
  SmallVector<StringRef> archs;
  StringRef(options.gpuArch).split(archs, ',');
  for (StringRef arch : archs) {
    if (!cuda::findGpuArch(arch))
      return fail("--gpu-arch=" + options.gpuArch + ": unknown architecture '" +
                  arch + "'; there are " + cuda::listGpuArchs());
    if (!seen.insert(arch).second)
      return fail("--gpu-arch=" + options.gpuArch + ": " + arch +
                  " is named twice");
  }
  bool isEmulated = seen.contains("emulated");
  if (isEmulated && archs.size() > 1)
    return fail("--gpu-arch=" + options.gpuArch +
                ": the emulated GPU stands alone");
  if (isEmulated && options.product == Product::KernelCode)
    return fail("--emit=ptx: the emulated GPU has no PTX; name another "
                "--gpu-arch");
  std::optional<int64_t> workspace = parseBytes(flags.libraryWorkspace);
  if (!workspace)
    return fail("--library-workspace=" + flags.libraryWorkspace +
                ": a size is needed, such as 32MiB");
  options.libraryWorkspace = *workspace;
  if (flags.gpuKernels != "classes" && flags.gpuKernels != "plain")
    return fail("--gpu-kernels=" + flags.gpuKernels +
                ": unknown; kernels are classes or plain");
  options.plainKernels = flags.gpuKernels == "plain";
  return true;
}
