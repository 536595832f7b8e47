//===- Plugins.cpp - Libraries that a program loads -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where they are, and the one that knows of cores.
//===----------------------------------------------------------------------===//

#include "runtime/job/Plugins.h"

#include "runtime/io/File.h"
#include "runtime/job/topology/Plugin.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

using namespace penstock::runtime;

/// Where the linker of this executable was told to look.
static const char *findRunPath() {
  const char *strings = nullptr;
  ElfW(Xword) at = 0;
  for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB)
      strings = reinterpret_cast<const char *>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_RUNPATH)
      at = entry->d_un.d_val;
  }
  return strings && at ? strings + at : "";
}

static void addFolders(const char *list, std::vector<std::string> &folders) {
  for (const char *text = list; text && *text;) {
    size_t length = std::strcspn(text, ":");
    // Linkers write the folder of the executable in words of their own.
    if (length && *text != '$')
      folders.emplace_back(text, length);
    text += length + (text[length] == ':');
  }
}

std::vector<std::string> penstock::runtime::listPluginFolders() {
  std::vector<std::string> folders;
  addFolders(std::getenv("PENSTOCK_LIBRARY_PATH"), folders);
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length > 0)
    folders.push_back(folderOf(std::string(path, length)));
  addFolders(findRunPath(), folders);
  return folders;
}

void penstock::runtime::orderCores(std::vector<int32_t> &cores) {
  std::sort(cores.begin(), cores.end());
  for (const std::string &folder : listPluginFolders()) {
    void *library = dlopen((folder + "/libpenstock-topology.so").c_str(),
                           RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    std::vector<int32_t> ordered = cores;
    auto order = reinterpret_cast<decltype(&penstock_order_cores)>(
        dlsym(library, "penstock_order_cores"));
    if (order && order(ordered.data(), uint32_t(ordered.size())))
      cores = std::move(ordered);
    dlclose(library);
    return;
  }
}
