//===- Products.cpp - The matrix products of a GPU ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns what ProductCalls.cpp planned into descriptors of cuBLASLt, and takes
// the first algorithm of its heuristic that computes the same bits each time:
// one that keeps partial sums apart, in f32, and adds them in order.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Products.h"

#include "penstock/cuda.h"

#include "runtime/device/LibraryCalls.h"

#include <span>
#include <utility>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// Alignment of operands, in bytes, that algorithms are chosen for: that of
/// 128-bit accesses. A second choice is for that of elements.
static constexpr uint32_t kAlignment = 16;
/// Offers of the heuristic, the fastest first, of which one is taken.
static constexpr int kChoices = 8;

namespace {

/// A layout of a matrix, or none.
class Layout {
public:
  explicit Layout(const CublasLt &library) : library(library) {}
  Layout(const Layout &) = delete;
  Layout &operator=(const Layout &) = delete;
  ~Layout() {
    if (layout)
      library.cublasLtMatrixLayoutDestroy(layout);
  }

  int create(const ColumnMatrix &matrix, int64_t batch, bool isBf16) {
    if (int status = library.cublasLtMatrixLayoutCreate(
            &layout, isBf16 ? CUDA_R_16BF : CUDA_R_32F, uint64_t(matrix.rows),
            uint64_t(matrix.columns), matrix.leading))
      return status;
    auto count = int32_t(batch);
    if (int status = library.cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)))
      return status;
    return library.cublasLtMatrixLayoutSetAttribute(
        layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        &matrix.batchStride, sizeof(matrix.batchStride));
  }

  MatrixLayout get() const { return layout; }

private:
  const CublasLt &library;
  MatrixLayout layout = nullptr;
};

} // namespace

struct Products::Prepared {
  explicit Prepared(const CublasLt &library)
      : library(library), left(library), right(library), result(library) {}
  Prepared(const Prepared &) = delete;
  Prepared &operator=(const Prepared &) = delete;
  ~Prepared() {
    if (matmul)
      library.cublasLtMatmulDescDestroy(matmul);
  }

  int describe(bool accumulate, bool isTf32);
  int choose(CublasLtHandle handle, uint32_t alignment,
             MatmulAlgorithm &algorithm) const;

  const CublasLt &library;
  ProductCalls calls;
  /// Whether factors, and the result, are bf16.
  bool isBf16 = false, isResultBf16 = false;
  MatmulDescriptor matmul = nullptr;
  Layout left, right, result;
  float beta = 0.0f;
  Address workspace = 0;
  uint64_t workspaceBytes = 0;
  /// For operands that are aligned, and for others.
  MatmulAlgorithm algorithms[2] = {};

  static uint64_t getBytes(bool isBf16) {
    return isBf16 ? sizeof(uint16_t) : sizeof(float);
  }
};

int Products::Prepared::describe(bool accumulate, bool isTf32) {
  beta = accumulate ? 1.0f : 0.0f;
  if (int status = library.cublasLtMatmulDescCreate(
          &matmul, isTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          CUDA_R_32F))
    return status;
  auto setTransposed = [&](int attribute, bool isTransposed) {
    int32_t operation = isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return library.cublasLtMatmulDescSetAttribute(matmul, attribute, &operation,
                                                  sizeof(operation));
  };
  if (int status =
          setTransposed(CUBLASLT_MATMUL_DESC_TRANSA, calls.left.isTransposed))
    return status;
  if (int status =
          setTransposed(CUBLASLT_MATMUL_DESC_TRANSB, calls.right.isTransposed))
    return status;
  if (int status = left.create(calls.left, calls.batch, isBf16))
    return status;
  if (int status = right.create(calls.right, calls.batch, isBf16))
    return status;
  return result.create(calls.result, calls.batch, isResultBf16);
}

int Products::Prepared::choose(CublasLtHandle handle, uint32_t alignment,
                               MatmulAlgorithm &algorithm) const {
  MatmulPreference preference = nullptr;
  int status = library.cublasLtMatmulPreferenceCreate(&preference);
  auto set = [&](int attribute, auto value) {
    if (!status)
      status = library.cublasLtMatmulPreferenceSetAttribute(
          preference, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (int attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(attribute, alignment);
  MatmulChoice choices[kChoices] = {};
  int count = 0;
  if (!status)
    status = library.cublasLtMatmulAlgoGetHeuristic(
        handle, matmul, left.get(), right.get(), result.get(), result.get(),
        preference, kChoices, choices, &count);
  if (preference)
    library.cublasLtMatmulPreferenceDestroy(preference);
  if (status)
    return status;

  for (const MatmulChoice &choice : std::span(choices, size_t(count))) {
    uint32_t scheme = 0;
    size_t written = 0;
    if (choice.status || choice.workspaceBytes > workspaceBytes ||
        library.cublasLtMatmulAlgoConfigGetAttribute(
            &choice.algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
            sizeof(scheme), &written))
      continue;
    if (scheme != CUBLASLT_REDUCTION_SCHEME_NONE &&
        scheme != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
      continue;
    algorithm = choice.algorithm;
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

Products::Products() = default;
Products::~Products() { clear(); }

void Products::clear() {
  products.clear();
  if (handle)
    library->cublasLtDestroy(handle);
  handle = nullptr;
}

static std::string describe(const penstock_gemm_descriptor &gemm) {
  std::string batch;
  for (uint32_t i = 0; i < gemm.batch_rank; ++i)
    batch += format("%lld x ", (long long)gemm.batch[i]);
  return format("%s(%lld x %lld by %lld x %lld)", batch.c_str(),
                (long long)gemm.m, (long long)gemm.k, (long long)gemm.k,
                (long long)gemm.n);
}

Error Products::prepare(const penstock_gemm_descriptor &gemm, Address scratch,
                        std::unique_ptr<Prepared> &result) {
  result = std::make_unique<Prepared>(*library);
  std::string reason = planProductCalls(gemm, result->calls);
  if (!reason.empty())
    return defect("no call of cuBLASLt computes the product %s: %s",
                  describe(gemm).c_str(), reason.c_str());
  result->workspace = getWorkspace(scratch);
  result->workspaceBytes = getWorkspaceBytes(gemm.scratch.bytes);
  auto *config = static_cast<const penstock_cuda_gemm *>(gemm.config);
  bool isTf32 = config && config->is_tf32;
  result->isBf16 = gemm.element == PENSTOCK_BF16;
  result->isResultBf16 = (gemm.result_element ? gemm.result_element
                                              : gemm.element) == PENSTOCK_BF16;
  if (!isTf32 && !result->isBf16)
    if (Error error = checkProductEnvironment())
      return error;
  int status = result->describe(gemm.accumulate, isTf32);
  const uint32_t alignments[] = {kAlignment,
                                 uint32_t(Prepared::getBytes(result->isBf16))};
  for (size_t i = 0; i < std::size(alignments) && !status; ++i)
    status = result->choose(handle, alignments[i], result->algorithms[i]);
  if (status)
    return userError("cuBLASLt has no algorithm for the product %s with %llu "
                     "bytes of workspace: %s",
                     describe(gemm).c_str(),
                     (unsigned long long)result->workspaceBytes,
                     library->cublasLtGetStatusName(status));
  return {};
}

Error Products::prepare(const penstock_program &program, uint32_t device,
                        Address arena) {
  products.resize(program.gemm_count);
  for (uint32_t i = 0; i < program.gemm_count; ++i) {
    const penstock_gemm_descriptor &gemm = program.gemms[i];
    if (!isCalledOn(gemm, device))
      continue;
    if (!handle) {
      if (Error error = loadCublasLt(library))
        return error;
      if (int status = library->cublasLtCreate(&handle))
        return userError("cuBLASLt %zu cannot use the GPU of device %u: %s",
                         library->cublasLtGetVersion(), device,
                         library->cublasLtGetStatusName(status));
    }
    if (Error error = prepare(gemm, arena + scratchOffset(gemm.scratch, device),
                              products[i]))
      return error;
  }
  return {};
}

/// An address that a library takes as a pointer.
static void *toPointer(Address address) {
  return reinterpret_cast<void *>(address);
}

Error Products::run(uint32_t id, Address a, Address b, Address c,
                    Stream stream) const {
  const Prepared &product = *products[id];
  const float alpha = 1.0f;
  for (const ProductCalls::Offsets &offset : product.calls.offsets) {
    uint64_t bytes = Prepared::getBytes(product.isBf16);
    Address left = a + uint64_t(offset.a) * bytes;
    Address right = b + uint64_t(offset.b) * bytes;
    Address to =
        c + uint64_t(offset.c) * Prepared::getBytes(product.isResultBf16);
    if (product.calls.isExchanged)
      std::swap(left, right);
    size_t choice = (left | right | to) % kAlignment ? 1 : 0;
    int status = library->cublasLtMatmul(
        handle, product.matmul, &alpha, toPointer(left), product.left.get(),
        toPointer(right), product.right.get(), &product.beta, toPointer(to),
        product.result.get(), toPointer(to), product.result.get(),
        &product.algorithms[choice], toPointer(product.workspace),
        product.workspaceBytes, stream);
    if (status)
      return defect("cublasLtMatmul failed in product %u, %lld x %lld by %lld "
                    "columns: %s",
                    id, (long long)product.calls.result.rows,
                    (long long)(product.calls.left.isTransposed
                                    ? product.calls.left.rows
                                    : product.calls.left.columns),
                    (long long)product.calls.result.columns,
                    library->cublasLtGetStatusName(status));
  }
  return {};
}
