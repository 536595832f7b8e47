// Passes for kinds of devices that the program has not are left out. Those of
// the first kind also lower what is for no device.

// RUN: penstock-opt %s --dump-pass-pipeline \
// RUN:   --pass-pipeline='builtin.module(lower-program-to-llvm)' \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefixes=CPU,CUDA
// RUN: penstock-opt %s --dump-pass-pipeline \
// RUN:   --pass-pipeline='builtin.module(lower-program-to-llvm{kinds=cuda})' \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefixes=CPU,CUDA
// RUN: penstock-opt %s --dump-pass-pipeline \
// RUN:   --pass-pipeline='builtin.module(lower-program-to-llvm{kinds=cpu})' \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=CPU \
// RUN:   --implicit-check-not=pipeline-gpu-loops

// CPU: pipeline-vector-loops
// CUDA: pipeline-gpu-loops
// CPU: convert-pipeline-to-runtime

module {
}
