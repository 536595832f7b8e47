//===- Libraries.cpp - Where the functions of CUDA come from --------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing of CUDA is there when Penstock is built: libraries are found by name
// when a program opens.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Libraries.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>

using namespace penstock::runtime;

constinit const cuda::Libraries *cuda::emulatedLibraries = nullptr;

static void *open(const std::string &path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void *cuda::openLibrary(std::initializer_list<const char *> names) {
  const char *variable = std::getenv("PENSTOCK_CUDA_PATH");
  std::string_view folders = variable ? variable : "";
  while (!folders.empty()) {
    size_t end = folders.find(':');
    std::string folder(folders.substr(0, end));
    folders.remove_prefix(end < folders.size() ? end + 1 : folders.size());
    if (folder.empty())
      continue;
    for (const char *name : names)
      for (const char *inner : {"/", "/lib64/", "/lib/"})
        if (void *library = open(folder + inner + name))
          return library;
  }
  for (const char *name : names)
    if (void *library = open(name))
      return library;
  return nullptr;
}

void *cuda::findFunction(void *library, const char *name) {
  return dlsym(library, name);
}
