//===- Library.cpp - The MPI of this process ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library of the wrong MPI makes every process believe that it is alone, so
// what it says is compared with what the launcher said.
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/Library.h"

#include "runtime/job/Plugins.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

using namespace penstock::runtime;

/// "openmpi" or "mpich", for a launcher that is of one of them.
static const char *guessName(Launcher launcher) {
  switch (launcher) {
  case Launcher::OpenMpi:
    return "openmpi";
  case Launcher::Hydra:
    return "mpich";
  default:
    return nullptr;
  }
}

Error MpiLibrary::load(const LaunchFacts &facts) {
  // 1. Which one.
  std::vector<std::string> names;
  const char *chosen = std::getenv("PENSTOCK_MPI");
  if (chosen && std::strchr(chosen, '/')) {
    names.push_back(chosen);
  } else if (chosen && *chosen) {
    names.push_back(chosen);
  } else if (const char *guess = guessName(facts.launcher)) {
    names.push_back(guess);
  } else {
    names = {"openmpi", "mpich"};
  }

  // 2. Where it is.
  std::string searched, reason;
  void *library = nullptr;
  for (const std::string &one : names) {
    std::vector<std::string> paths;
    if (one.find('/') != std::string::npos)
      paths.push_back(one);
    else
      for (const std::string &folder : listPluginFolders())
        paths.push_back(folder + "/libpenstock-mpi-" + one + ".so");
    for (const std::string &path : paths) {
      if (library)
        break;
      searched += (searched.empty() ? "" : ", ") + path;
      if (access(path.c_str(), F_OK) != 0)
        continue;
      library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!library)
        reason = dlerror();
    }
  }
  if (!library && !reason.empty())
    return userError("--transport=mpi: cannot load MPI: %s", reason.c_str());
  if (!library)
    return userError("--transport=mpi: none of %s is there; make one with "
                     "penstock-build-mpi, and name it by PENSTOCK_MPI",
                     searched.c_str());
  auto load = reinterpret_cast<penstock_mpi_load_function>(
      dlsym(library, "penstock_mpi_load"));
  functions = load ? load() : nullptr;
  if (!functions || functions->version != PENSTOCK_MPI_VERSION)
    return userError("--transport=mpi: the last of %s was made for another "
                     "version; make it again with penstock-build-mpi",
                     searched.c_str());
  return {};
}

Error MpiLibrary::failed(int code) const {
  return {PENSTOCK_PEER_FAILED,
          format("%s: %s", name.c_str(), functions->describe(code))};
}

Error MpiLibrary::start(const LaunchFacts &facts) {
  int rank = 0, size = 0, isSerialized = 0;
  int code = functions->init(&rank, &size, &isSerialized, &largestTag);
  hasStarted = true;
  name = functions->library();
  if (code != 0)
    return failed(code);
  if (size != facts.size || rank != facts.rank)
    return userError("started as %d processes by %s, but %s sees %d: set "
                     "PENSTOCK_MPI=openmpi or mpich, whichever started them",
                     facts.size, penstock::runtime::getName(facts.launcher),
                     name.c_str(), size);
  if (!isSerialized)
    return userError("%s does not let several threads call it "
                     "(MPI_THREAD_SERIALIZED)",
                     name.c_str());
  return {};
}

void MpiLibrary::finalize() {
  if (hasStarted)
    functions->finalize();
  hasStarted = false;
}
