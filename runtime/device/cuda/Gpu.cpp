//===- Gpu.cpp - A GPU and the kernels of a program on it -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses an image, has the driver load it, and looks the kernels up.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Gpu.h"

#include "runtime/device/cuda/Libraries.h"

#include "runtime/support/Wait.h"

#include <cstdio>
#include <map>
#include <mutex>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

int cuda::placeDevice(uint32_t turn, int count, std::span<const int> chosen) {
  if (chosen.empty())
    return int(turn % uint32_t(count));
  return chosen[turn % chosen.size()];
}

Gpu::Visit::Visit(const Gpu &gpu) : driver(gpu.driver) {
  (void)driver.cuCtxGetCurrent(&before);
  (void)driver.cuCtxSetCurrent(gpu.context);
}

Gpu::Visit::~Visit() { (void)driver.cuCtxSetCurrent(before); }

const penstock_image *cuda::chooseImage(const penstock_device_code &code,
                                        uint32_t arch) {
  const penstock_image *best = nullptr;
  for (uint32_t i = 0; i < code.image_count; ++i) {
    const penstock_image &image = code.images[i];
    switch (image.kind) {
    case PENSTOCK_IMAGE_EMULATED:
      if (emulatedLibraries)
        return &image;
      break;
    case PENSTOCK_IMAGE_CUBIN:
      // Machine code runs on GPUs of its generation from its number on.
      if (image.arch == arch ||
          (!image.feature && image.arch / 10 == arch / 10 && image.arch < arch))
        if (!best || best->kind == PENSTOCK_IMAGE_PTX ||
            image.arch > best->arch)
          best = &image;
      break;
    case PENSTOCK_IMAGE_PTX:
      if ((image.feature ? image.arch == arch : image.arch <= arch) &&
          (!best ||
           (best->kind == PENSTOCK_IMAGE_PTX && image.arch > best->arch)))
        best = &image;
      break;
    }
  }
  return best;
}

/// The architectures that a program has code for, for a message.
static std::string listArchs(const penstock_device_code &code) {
  std::string list, last;
  for (uint32_t i = 0; i < code.image_count; ++i) {
    const penstock_image &image = code.images[i];
    std::string name =
        image.kind == PENSTOCK_IMAGE_EMULATED
            ? "the emulated GPU"
            : format("sm_%u%s", image.arch, image.feature ? "a" : "");
    if (name == last)
      continue;
    list += (list.empty() ? "" : ", ") + name;
    last = name;
  }
  return list;
}

Error Gpu::load(const penstock_program &program) {
  int status = driver.cuDeviceGet(&gpu, ordinal);
  if (!status)
    status = driver.cuDevicePrimaryCtxRetain(&context, gpu);
  if (status) {
    context = nullptr;
    return userError("GPU %d cannot be used: %s", ordinal,
                     describeStatus(driver, status).c_str());
  }
  if (int status = enter())
    return describeFailure(driver, status, "cuCtxSetCurrent");
  if (!program.kernel_count)
    return {};
  int major = 0, minor = 0;
  status = driver.cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu);
  if (!status)
    status = driver.cuDeviceGetAttribute(
        &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu);
  if (status)
    return describeFailure(driver, status, "cuDeviceGetAttribute");
  auto arch = uint32_t(10 * major + minor);
  const penstock_image *image = chooseImage(*program.code, arch);
  if (!image)
    return userError("this program has code for %s; GPU %d is sm_%u: compile "
                     "it with --gpu-arch=sm_%u",
                     listArchs(*program.code).c_str(), ordinal, arch, arch);
  // The emulated driver takes the description, which says where the table ends.
  const void *data = image->begin;
  if (image->kind == PENSTOCK_IMAGE_EMULATED)
    data = image;
  int64_t start = nanoseconds();
  status = driver.cuModuleLoadDataEx(&module, data, 0, nullptr, nullptr);
  if (status == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    int version = 0;
    (void)driver.cuDriverGetVersion(&version);
    return userError(
        "the NVIDIA driver (CUDA %d.%d) is too old for the code of "
        "sm_%u; install a newer one, or compile with ptxas",
        version / 1000, version % 1000 / 10, image->arch);
  }
  if (status)
    return describeFailure(driver, status, "cuModuleLoadDataEx");
  if (image->kind == PENSTOCK_IMAGE_PTX)
    std::fprintf(stderr,
                 "note: compiled the kernels for GPU %d, sm_%u, from the code "
                 "of sm_%u in %.1f s\n",
                 ordinal, arch, image->arch,
                 double(nanoseconds() - start) * 1e-9);
  functions.resize(program.kernel_count);
  for (uint32_t i = 0; i < program.kernel_count; ++i)
    if (driver.cuModuleGetFunction(&functions[i], module,
                                   program.kernels[i].name))
      return defect("the code for GPU %d has no kernel '%s'", ordinal,
                    program.kernels[i].name);
  return {};
}

bool Gpu::reaches(const Gpu &other) const {
  if (ordinal == other.ordinal)
    return true;
  int isConnected = 0;
  if (driver.cuDeviceCanAccessPeer(&isConnected, gpu, other.gpu) ||
      !isConnected)
    return false;
  int status = driver.cuCtxEnablePeerAccess(other.context, 0);
  return !status || status == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

int Gpu::getName(std::string &name) const {
  char text[256] = {};
  int status = driver.cuDeviceGetName(text, sizeof(text), gpu);
  name = text;
  return status;
}

Gpu::~Gpu() {
  if (!context)
    return;
  if (module) {
    Visit visit(*this);
    (void)driver.cuModuleUnload(module);
  }
  (void)driver.cuDevicePrimaryCtxRelease(gpu);
}

Error Gpu::open(const Driver &driver, const penstock_program &program,
                int ordinal, std::shared_ptr<Gpu> &result) {
  static std::mutex mutex;
  static std::map<std::pair<const void *, int>, std::weak_ptr<Gpu>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Gpu> &known = opened[{program.code, ordinal}];
  if ((result = known.lock()))
    return {};
  result = std::make_shared<Gpu>(driver, ordinal);
  if (Error error = result->load(program)) {
    result.reset();
    return error;
  }
  known = result;
  return {};
}
