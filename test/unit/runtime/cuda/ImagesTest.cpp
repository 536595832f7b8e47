//===- ImagesTest.cpp - Which code a GPU gets -----------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Machine code before text, nothing newer than the GPU; what is said where
// nothing fits; what the driver is given. The driver is the emulated one, which
// says that it is another GPU.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/Libraries.h"
#include "runtime/device/emulated/Driver.h"

#include <gtest/gtest.h>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

namespace {

constexpr char kText[] = "code";

penstock_image text(uint32_t arch, uint32_t feature = 0) {
  return {PENSTOCK_IMAGE_PTX, arch, feature, 0, kText, std::end(kText)};
}
penstock_image machineCode(uint32_t arch, uint32_t feature = 0) {
  return {PENSTOCK_IMAGE_CUBIN, arch, feature, 0, kText, std::end(kText)};
}

/// Makes the emulated GPU the one that is linked, or not, for a while.
class WithEmulation {
public:
  explicit WithEmulation(bool isEmulated) {
    if (!isEmulated)
      emulatedLibraries = nullptr;
  }
  ~WithEmulation() { emulatedLibraries = before; }

private:
  const Libraries *before = emulatedLibraries;
};

/// Returns the number of the image that is chosen, or -1.
int choose(const std::vector<penstock_image> &images, uint32_t capability,
           bool isEmulated = false) {
  WithEmulation emulation(isEmulated);
  penstock_device_code code = {uint32_t(images.size()), images.data()};
  const penstock_image *image = chooseImage(code, capability);
  return image ? int(image - images.data()) : -1;
}

TEST(Images, AreChosenForTheGpu) {
  std::vector<penstock_image> images = {
      machineCode(80), text(80), machineCode(90), text(90), text(100, 'a')};
  EXPECT_EQ(choose(images, 75), -1);
  EXPECT_EQ(choose(images, 80), 0);
  // Machine code for its generation, before text.
  EXPECT_EQ(choose(images, 86), 0);
  EXPECT_EQ(choose(images, 90), 2);
  EXPECT_EQ(choose(images, 100), 4);
  EXPECT_EQ(choose(images, 120), 3);
  EXPECT_EQ(choose({text(80), text(75)}, 90), 0);
  EXPECT_EQ(choose({machineCode(86)}, 80), -1);
  EXPECT_EQ(choose({machineCode(90, 'a')}, 90), 0);
  EXPECT_EQ(choose({machineCode(100, 'a')}, 103), -1);
  EXPECT_EQ(choose({text(100, 'a')}, 103), -1);
}

TEST(Images, AreKeptApartFromEmulatedOnes) {
  penstock_image emulated = {PENSTOCK_IMAGE_EMULATED, 90, 0, 0, kText, kText};
  EXPECT_EQ(choose({text(100), emulated}, 90, true), 1);
  EXPECT_EQ(choose({text(80), emulated}, 90), 0);
  EXPECT_EQ(choose({emulated}, 90), -1);
}

TEST(Images, GoToTheDevicesInTurn) {
  EXPECT_EQ(placeDevice(0, 2), 0);
  EXPECT_EQ(placeDevice(3, 2), 1);
  const int chosen[] = {4, 2, 7};
  EXPECT_EQ(placeDevice(2, 8, chosen), 7);
  EXPECT_EQ(placeDevice(4, 8, chosen), 2);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

int loadStatus = CUDA_SUCCESS, contextStatus = CUDA_SUCCESS;
std::string loadedText;

int loadModule(Module *module, const void *image, unsigned, int *, void **) {
  loadedText = static_cast<const char *>(image);
  *module = nullptr;
  return loadStatus;
}

/// Opens an sm_86 with a driver for CUDA 12.2 and loads these images.
class LoadingTest : public testing::Test {
protected:
  Error load(const std::vector<penstock_image> &images) {
    Driver driver = emulated::driver;
    driver.cuModuleLoadDataEx = loadModule;
    driver.cuModuleUnload = [](Module) -> int { return CUDA_SUCCESS; };
    driver.cuModuleGetFunction = [](Function *, Module, const char *) -> int {
      return CUDA_SUCCESS;
    };
    driver.cuDriverGetVersion = [](int *version) -> int {
      *version = 12020;
      return CUDA_SUCCESS;
    };
    driver.cuDeviceGetAttribute = [](int *value, int attribute, int) -> int {
      *value =
          attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8 : 6;
      return CUDA_SUCCESS;
    };
    if (contextStatus)
      driver.cuDevicePrimaryCtxRetain = [](DriverContext *, int) -> int {
        return contextStatus;
      };
    // As it is where the emulated GPU is not linked.
    WithEmulation emulation(false);
    driver.cuInit(0);
    penstock_device_code code = {uint32_t(images.size()), images.data()};
    penstock_kernel kernel = {"add", {1, 1, 1}, {1, 1, 1}, 0, 1};
    penstock_program program = {};
    program.kernel_count = 1;
    program.kernels = &kernel;
    program.code = &code;
    std::shared_ptr<Gpu> gpu;
    Error error = Gpu::open(driver, program, 0, gpu);
    EXPECT_EQ(gpu ? gpu->functions.size() : 0, error ? 0u : 1u);
    gpu.reset();
    driver.cuCtxSetCurrent(nullptr);
    return error;
  }

  void TearDown() override { loadStatus = contextStatus = CUDA_SUCCESS; }
};

TEST_F(LoadingTest, SaysThatTextIsCompiled) {
  testing::internal::CaptureStderr();
  Error error = load({text(80)});
  std::string note = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(error) << error.text;
  EXPECT_EQ(loadedText, kText);
  EXPECT_EQ(note, "note: compiled the kernels for GPU 0, sm_86, from the code "
                  "of sm_80 in 0.0 s\n");
}

TEST_F(LoadingTest, LoadsMachineCode) {
  testing::internal::CaptureStderr();
  Error error = load({text(80), machineCode(86)});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(error) << error.text;
  EXPECT_EQ(loadedText, kText);
}

TEST_F(LoadingTest, SaysWhichCodeThereIs) {
  Error error = load({machineCode(90), text(90), machineCode(100, 'a')});
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text, "this program has code for sm_90, sm_100a; GPU 0 is "
                        "sm_86: compile it with --gpu-arch=sm_86");
}

TEST_F(LoadingTest, SaysThatTheDriverIsTooOld) {
  loadStatus = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  Error error = load({text(80)});
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text,
            "the NVIDIA driver (CUDA 12.2) is too old for the code of sm_80; "
            "install a newer one, or compile with ptxas");
}

TEST_F(LoadingTest, SaysWhatTheDriverSays) {
  loadStatus = CUDA_ERROR_NOT_FOUND;
  Error error = load({machineCode(86)});
  EXPECT_EQ(error.code, PENSTOCK_DEFECT);
  EXPECT_EQ(error.text, "cuModuleLoadDataEx failed: CUDA_ERROR_NOT_FOUND, on "
                        "the emulated GPU");
}

TEST_F(LoadingTest, SaysWhyAGpuCannotBeUsed) {
  contextStatus = CUDA_ERROR_INVALID_DEVICE;
  Error error = load({text(80)});
  EXPECT_EQ(error.code, PENSTOCK_USER_ERROR);
  EXPECT_EQ(error.text, "GPU 0 cannot be used: CUDA_ERROR_INVALID_DEVICE, on "
                        "the emulated GPU");
}

} // namespace
