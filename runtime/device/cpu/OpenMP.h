//===- OpenMP.h - The thread pool that oneDNN uses too ----------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The packaged oneDNN runs on GCC's OpenMP runtime. Calling its entry points
// directly gives generated code the same team of threads, whatever compiler
// built us.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_DEVICE_CPU_OPENMP_H
#define PENSTOCK_RUNTIME_DEVICE_CPU_OPENMP_H

extern "C" {
void omp_set_num_threads(int threads);
void omp_set_dynamic(int isDynamic);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags);
}

#endif // PENSTOCK_RUNTIME_DEVICE_CPU_OPENMP_H
