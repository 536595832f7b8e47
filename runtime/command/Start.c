/*===- Start.c - The entry point of compiled executables --------------------===
 *
 * Part of the Penstock project, under the Apache License v2.0 with LLVM
 * Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library of its own, so that programs that embed a compiled pipeline keep
 * their own main.
 *===-----------------------------------------------------------------------===*/

#include "penstock/abi.h"

/* The constant has the name of its type, which C code cannot say. */
extern const penstock_program program __asm__("penstock_program");

int main(int argc, char **argv) { return penstock_main(argc, argv, &program); }
