//===- Products.cpp - The matrix products of a GPU ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns what ProductCalls.cpp planned into descriptors of cuBLASLt, and takes
// the first algorithm of its heuristic that computes the same bits each time:
// one that keeps partial sums apart, in f32, and adds them in order. A tuning
// takes the fastest of those.
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Products.h"

#include "penstock/cuda.h"

#include "runtime/device/LibraryCalls.h"
#include "runtime/device/cuda/EpilogueTrial.h"
#include "runtime/device/cuda/Tuning.h"

#include <charconv>
#include <span>
#include <utility>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;

/// Alignment of operands, in bytes, that algorithms are chosen for: that of
/// 128-bit accesses. A second choice is for that of elements.
static constexpr uint32_t kAlignment = 16;
/// Offers of the heuristic, the fastest first, of which one is taken.
static constexpr int kChoices = 8;
/// As it is called where choices are kept.
static constexpr char kCublasLt[] = "cuBLASLt";

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

/// An address that a library takes as a pointer.
static void *toPointer(Address address) {
  return reinterpret_cast<void *>(address);
}

static uint64_t alignUp(uint64_t bytes) {
  return bytes + -bytes % kWorkspaceAlignment;
}

/// Returns whether an algorithm keeps partial sums apart, in f32, and adds them
/// in order.
static bool isOrdered(const CublasLt &library,
                      const MatmulAlgorithm &algorithm) {
  uint32_t scheme = 0;
  size_t written = 0;
  return !library.cublasLtMatmulAlgoConfigGetAttribute(
             &algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
             sizeof(scheme), &written) &&
         (scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
          scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

/// The words of an algorithm, which the library lets its callers keep.
static std::string print(const MatmulAlgorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data)
    text += format("%016llx", (unsigned long long)word);
  return text;
}

static bool parse(std::string_view text, MatmulAlgorithm &algorithm) {
  constexpr size_t kDigits = 16;
  if (text.size() != std::size(algorithm.data) * kDigits)
    return false;
  for (uint64_t &word : algorithm.data) {
    const char *last = text.data() + kDigits;
    auto [stop, status] = std::from_chars(text.data(), last, word, 16);
    if (status != std::errc() || stop != last)
      return false;
    text.remove_prefix(kDigits);
  }
  return true;
}

struct Products::Prepared {
  explicit Prepared(const CublasLt &library)
      : library(library), left(library), right(library), result(library) {}
  Prepared(const Prepared &) = delete;
  Prepared &operator=(const Prepared &) = delete;
  ~Prepared() {
    for (MatmulDescriptor each : {matmul, whole})
      if (each)
        library.cublasLtMatmulDescDestroy(each);
  }

  int describe(bool accumulate);
  int create(MatmulDescriptor &descriptor) const;
  int addEpilogue(const penstock_cuda_gemm &epilogue);
  /// Leaves the epilogue to kernels.
  void removeEpilogue();
  int list(CublasLtHandle handle, uint32_t alignment,
           std::vector<MatmulAlgorithm> &algorithms) const;
  int choose(CublasLtHandle handle, uint32_t alignment, const std::string &key,
             Tuning *tuning, MatmulAlgorithm &algorithm) const;
  bool takes(CublasLtHandle handle, MatmulDescriptor descriptor,
             const MatmulAlgorithm &algorithm) const;
  int setBias(Address bias) const;
  int multiply(CublasLtHandle handle, MatmulDescriptor descriptor,
               Address leftAt, Address rightAt, Address resultAt,
               const MatmulAlgorithm &algorithm, Address workspaceAt,
               Stream stream) const;

  const CublasLt &library;
  ProductCalls calls;
  /// True if factors, and the result, are bf16.
  bool isBf16 = false, isResultBf16 = false;
  bool isTf32 = false;
  /// The product, and the one with its epilogue; null where kernels apply it.
  MatmulDescriptor matmul = nullptr, whole = nullptr;
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

int Products::Prepared::create(MatmulDescriptor &descriptor) const {
  if (int status = library.cublasLtMatmulDescCreate(
          &descriptor,
          isTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          CUDA_R_32F))
    return status;
  auto setTransposed = [&](int attribute, bool isTransposed) {
    int32_t operation = isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return library.cublasLtMatmulDescSetAttribute(
        descriptor, attribute, &operation, sizeof(operation));
  };
  if (int status =
          setTransposed(CUBLASLT_MATMUL_DESC_TRANSA, calls.left.isTransposed))
    return status;
  return setTransposed(CUBLASLT_MATMUL_DESC_TRANSB, calls.right.isTransposed);
}

int Products::Prepared::describe(bool accumulate) {
  beta = accumulate ? 1.0f : 0.0f;
  if (int status = create(matmul))
    return status;
  if (int status = left.create(calls.left, calls.batch, isBf16))
    return status;
  if (int status = right.create(calls.right, calls.batch, isBf16))
    return status;
  return result.create(calls.result, calls.batch, isResultBf16);
}

int Products::Prepared::addEpilogue(const penstock_cuda_gemm &epilogue) {
  if (int status = create(whole))
    return status;
  uint32_t kind = (epilogue.has_bias ? CUBLASLT_EPILOGUE_BIAS : 0) |
                  (epilogue.has_relu ? CUBLASLT_EPILOGUE_RELU : 0);
  return library.cublasLtMatmulDescSetAttribute(
      whole, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof(kind));
}

void Products::Prepared::removeEpilogue() {
  if (whole)
    library.cublasLtMatmulDescDestroy(whole);
  whole = nullptr;
}

/// The algorithms that compute the same bits each time, the fastest first by
/// the library's heuristic.
int Products::Prepared::list(CublasLtHandle handle, uint32_t alignment,
                             std::vector<MatmulAlgorithm> &algorithms) const {
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

  for (const MatmulChoice &choice : std::span(choices, size_t(count)))
    if (!choice.status && choice.workspaceBytes <= workspaceBytes &&
        isOrdered(library, choice.algorithm))
      algorithms.push_back(choice.algorithm);
  return algorithms.empty() ? CUBLAS_STATUS_NOT_SUPPORTED
                            : CUBLAS_STATUS_SUCCESS;
}

/// Returns whether an algorithm, which may come from a file, computes this
/// product.
bool Products::Prepared::takes(CublasLtHandle handle,
                               MatmulDescriptor descriptor,
                               const MatmulAlgorithm &algorithm) const {
  MatmulChoice checked = {};
  return !library.cublasLtMatmulAlgoCheck(handle, descriptor, left.get(),
                                          right.get(), result.get(),
                                          result.get(), &algorithm, &checked) &&
         checked.workspaceBytes <= workspaceBytes &&
         isOrdered(library, algorithm);
}

/// Sets the bias of the next call. No other thread has this descriptor.
int Products::Prepared::setBias(Address bias) const {
  const void *pointer = toPointer(bias);
  return library.cublasLtMatmulDescSetAttribute(
      whole, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
      static_cast<const void *>(&pointer), sizeof(pointer));
}

int Products::Prepared::multiply(CublasLtHandle handle,
                                 MatmulDescriptor descriptor, Address leftAt,
                                 Address rightAt, Address resultAt,
                                 const MatmulAlgorithm &algorithm,
                                 Address workspaceAt, Stream stream) const {
  const float alpha = 1.0f;
  return library.cublasLtMatmul(handle, descriptor, &alpha, toPointer(leftAt),
                                left.get(), toPointer(rightAt), right.get(),
                                &beta, toPointer(resultAt), result.get(),
                                toPointer(resultAt), result.get(), &algorithm,
                                toPointer(workspaceAt), workspaceBytes, stream);
}

/// The number of elements from a matrix's first to its last in a batch.
static uint64_t getSpan(const ColumnMatrix &matrix, int64_t batch) {
  return uint64_t((batch - 1) * matrix.batchStride +
                  (matrix.columns - 1) * matrix.leading + matrix.rows);
}

int Products::Prepared::choose(CublasLtHandle handle, uint32_t alignment,
                               const std::string &key, Tuning *tuning,
                               MatmulAlgorithm &algorithm) const {
  std::vector<MatmulAlgorithm> algorithms;
  if (int status = list(handle, alignment, algorithms))
    return status;
  algorithm = algorithms.front();
  if (!tuning)
    return CUBLAS_STATUS_SUCCESS;

  // Operands one after the other, aligned as these are and no better.
  uint64_t bytes = alignUp(workspaceBytes);
  uint64_t begins[3] = {};
  auto place = [&](const ColumnMatrix &matrix, bool is16) {
    uint64_t begin = bytes + alignment;
    bytes = alignUp(begin + getSpan(matrix, calls.batch) * getBytes(is16));
    return begin;
  };
  begins[0] = place(calls.left, isBf16);
  begins[1] = place(calls.right, isBf16);
  begins[2] = place(calls.result, isResultBf16);
  std::string choice = tuning->choose(
      kCublasLt, int64_t(library.cublasLtGetVersion()), key, bytes,
      [&](Address memory) {
        std::vector<Candidate> candidates;
        for (const MatmulAlgorithm &each : algorithms)
          candidates.push_back({print(each), [=, this](Stream stream) {
                                  return !multiply(
                                      handle, matmul, memory + begins[0],
                                      memory + begins[1], memory + begins[2],
                                      each, memory, stream);
                                }});
        return candidates;
      });
  if (choice.empty())
    return CUBLAS_STATUS_SUCCESS;
  MatmulAlgorithm kept;
  if (parse(choice, kept) && takes(handle, matmul, kept))
    algorithm = kept;
  else
    tuning->reject(kCublasLt, key);
  return CUBLAS_STATUS_SUCCESS;
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

/// All that the choice of an algorithm depends on.
static std::string getKey(const penstock_gemm_descriptor &gemm, bool isTf32,
                          uint32_t alignment, uint64_t workspaceBytes) {
  auto getElementName = [&](uint32_t element) {
    return element == PENSTOCK_BF16 ? "bf16" : isTf32 ? "tf32" : "f32";
  };
  std::string key =
      format("%s %s", describe(gemm).c_str(), getElementName(gemm.element));
  if (gemm.result_element && gemm.result_element != gemm.element)
    key += format(" to %s", getElementName(gemm.result_element));
  if (gemm.accumulate)
    key += " adding";
  for (const int64_t *strides : {gemm.stride_a, gemm.stride_b, gemm.stride_c}) {
    key += " strides";
    for (uint32_t i = 0; i < gemm.batch_rank + 2; ++i)
      key += format("%c%lld", i ? ',' : ' ', (long long)strides[i]);
  }
  return key + format(" aligned %u workspace %llu", alignment,
                      (unsigned long long)workspaceBytes);
}

Error Products::prepare(const penstock_gemm_descriptor &gemm, Address scratch,
                        Tuning *tuning, std::unique_ptr<Prepared> &result) {
  result = std::make_unique<Prepared>(*library);
  std::string reason = planProductCalls(gemm, result->calls);
  if (!reason.empty())
    return defect("no call of cuBLASLt computes the product %s: %s",
                  describe(gemm).c_str(), reason.c_str());
  result->workspace = getWorkspace(scratch);
  result->workspaceBytes = getWorkspaceBytes(gemm.scratch.bytes);
  auto *config = static_cast<const penstock_cuda_gemm *>(gemm.config);
  bool isTf32 = config && config->is_tf32;
  result->isTf32 = isTf32;
  result->isBf16 = gemm.element == PENSTOCK_BF16;
  result->isResultBf16 = (gemm.result_element ? gemm.result_element
                                              : gemm.element) == PENSTOCK_BF16;
  if (!isTf32 && !result->isBf16)
    if (Error error = checkProductEnvironment())
      return error;
  int status = result->describe(gemm.accumulate);
  const uint32_t alignments[] = {kAlignment,
                                 uint32_t(Prepared::getBytes(result->isBf16))};
  for (size_t i = 0; i < std::size(alignments) && !status; ++i)
    status = result->choose(
        handle, alignments[i],
        getKey(gemm, isTf32, alignments[i], result->workspaceBytes), tuning,
        result->algorithms[i]);
  if (status)
    return userError("cuBLASLt has no algorithm for the product %s with %llu "
                     "bytes of workspace: %s",
                     describe(gemm).c_str(),
                     (unsigned long long)result->workspaceBytes,
                     library->cublasLtGetStatusName(status));
  return {};
}

/// The algorithm was chosen for the product alone: its sums must not depend on
/// which ops are in the same stage.
void Products::tryEpilogue(const penstock_gemm_descriptor &gemm,
                           const EpilogueTrial &trial, Prepared &product) {
  const auto &epilogue = *static_cast<const penstock_cuda_gemm *>(gemm.config);
  const MatmulAlgorithm &algorithm = product.algorithms[0];
  auto multiply = [&](const EpilogueTrial::Operands &operands, bool isWhole) {
    int status = isWhole && epilogue.has_bias ? product.setBias(operands.bias)
                                              : CUBLAS_STATUS_SUCCESS;
    return status
               ? status
               : product.multiply(handle,
                                  isWhole ? product.whole : product.matmul,
                                  operands.b, operands.a, operands.c, algorithm,
                                  operands.workspace, trial.getStream());
  };
  // A bias is an element for each row of what the library sees. The library
  // may look at its address, which is aligned as that of the workspace.
  if (product.calls.isExchanged && product.calls.batch == 1 &&
      product.calls.offsets.size() == 1 && !product.addEpilogue(epilogue) &&
      !(epilogue.has_bias && product.setBias(product.workspace)) &&
      product.takes(handle, product.whole, algorithm) &&
      trial.run(gemm, epilogue, product.workspaceBytes, multiply))
    ++applied;
  else
    product.removeEpilogue();
}

static bool hasEpilogue(const penstock_gemm_descriptor &gemm) {
  const auto *config = static_cast<const penstock_cuda_gemm *>(gemm.config);
  return config && (config->has_bias || config->has_relu);
}

Error Products::prepare(const penstock_program &program, uint32_t device,
                        Address arena, Tuning *tuning,
                        const EpilogueTrial *trial) {
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
                              tuning, products[i]))
      return error;
    if (!hasEpilogue(gemm))
      continue;
    ++epilogues;
    if (trial)
      tryEpilogue(gemm, *trial, *products[i]);
  }
  return {};
}

Error Products::run(uint32_t id, Address a, Address b, Address c,
                    Stream stream) const {
  return run(id, products[id]->matmul, a, b, c, stream);
}

Error Products::run(uint32_t id, Address a, Address b, Address c, Address bias,
                    Stream stream, bool &pending) const {
  const Prepared &product = *products[id];
  // The algorithm for others than aligned operands was not tried.
  pending = !product.whole || (a | b | c | bias) % kAlignment ||
            (bias && product.setBias(bias));
  return run(id, pending ? product.matmul : product.whole, a, b, c, stream);
}

Error Products::run(uint32_t id, MatmulDescriptor matmul, Address a, Address b,
                    Address c, Stream stream) const {
  const Prepared &product = *products[id];
  for (const ProductCalls::Offsets &offset : product.calls.offsets) {
    uint64_t bytes = Prepared::getBytes(product.isBf16);
    Address left = a + uint64_t(offset.a) * bytes;
    Address right = b + uint64_t(offset.b) * bytes;
    Address to =
        c + uint64_t(offset.c) * Prepared::getBytes(product.isResultBf16);
    if (product.calls.isExchanged)
      std::swap(left, right);
    size_t choice = (left | right | to) % kAlignment ? 1 : 0;
    int status =
        product.multiply(handle, matmul, left, right, to,
                         product.algorithms[choice], product.workspace, stream);
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
