//===- CublasLt.cpp - cuBLASLt of the emulated GPU ------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// D = alpha op(A).op(B) + beta C of f32 or bf16 matrices by columns, in strided
// batches, then an element per row of D and ReLU. It is as strict as the
// documentation allows: an algorithm runs only with the matrices, the alignment
// and the workspace that it was chosen for, and overwrites all of its
// workspace.
//===----------------------------------------------------------------------===//

#include "runtime/device/emulated/Enqueue.h"
#include "runtime/device/emulated/Libraries.h"
#include "runtime/support/Bf16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

using namespace penstock::runtime;
using namespace penstock::runtime::cuda;
using emulated::atAddress;

/// The bytes of the workspace that algorithms claim.
static constexpr size_t kClaimedWorkspace = 1 << 14;

struct cuda::CublasLtState {};

struct cuda::MatrixLayoutState {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t batchStride = 0;

  /// Returns true if every element has a place of its own in its matrix.
  bool isValid() const {
    return rows > 0 && columns > 0 && leading >= int64_t(rows) && batch > 0 &&
           batchStride >= 0;
  }
};

struct cuda::MatmulState {
  bool isTf32 = false;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;

  bool hasBias() const { return epilogue & CUBLASLT_EPILOGUE_BIAS; }
  bool hasRelu() const { return epilogue & CUBLASLT_EPILOGUE_RELU; }
};

struct cuda::MatmulPreferenceState {
  uint64_t workspaceBytes = 0;
  uint32_t reductionSchemes = 7; // all
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

/// The problem that an algorithm was chosen for, in its data.
struct Algorithm {
  static constexpr uint32_t kMark = 0x756d6531;

  uint64_t workspaceBytes;
  uint32_t alignments[4];
  uint32_t reductionScheme;
  uint32_t mark = kMark; // the library made it

  /// Without partial sums, terms are added in f32, one after the other.
  bool isPlain() const {
    return reductionScheme == CUBLASLT_REDUCTION_SCHEME_NONE;
  }
};
static_assert(sizeof(Algorithm) <= sizeof(MatmulAlgorithm));

/// Sets a value of which the caller states the size.
template <typename T> int assign(T &to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(static_cast<void *>(&to), value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

static size_t getCublasLtVersion() { return 130000; }

static const char *getStatusName(int status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE
             ? "CUBLAS_STATUS_INVALID_VALUE"
             : "CUBLAS_STATUS_NOT_SUPPORTED";
}

static int create(CublasLtHandle *result) {
  *result = new CublasLtState;
  return CUBLAS_STATUS_SUCCESS;
}

static int destroy(CublasLtHandle handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static int createLayout(MatrixLayout *result, int type, uint64_t rows,
                        uint64_t columns, int64_t leading) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = new MatrixLayoutState{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}

static int destroyLayout(MatrixLayout layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

static int setLayoutAttribute(MatrixLayout layout, int attribute,
                              const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return assign(layout->batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return assign(layout->batchStride, value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

static int createMatmul(MatmulDescriptor *result, int computeType,
                        int scaleType) {
  bool isTf32 = computeType == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((computeType != CUBLAS_COMPUTE_32F && !isTf32) || scaleType != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = new MatmulState{.isTf32 = isTf32};
  return CUBLAS_STATUS_SUCCESS;
}

static int destroyMatmul(MatmulDescriptor matmul) {
  delete matmul;
  return CUBLAS_STATUS_SUCCESS;
}

static int setMatmulAttribute(MatmulDescriptor matmul, int attribute,
                              const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return assign(matmul->transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return assign(matmul->transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return assign(matmul->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return assign(matmul->bias, value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

static int createPreference(MatmulPreference *result) {
  *result = new MatmulPreferenceState;
  return CUBLAS_STATUS_SUCCESS;
}

static int destroyPreference(MatmulPreference preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

static int setPreferenceAttribute(MatmulPreference preference, int attribute,
                                  const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return assign(preference->workspaceBytes, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return assign(preference->reductionSchemes, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return assign(
        preference->alignments[attribute -
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
        value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// A product of matrices in memory that fit.
struct Matmul {
  uint64_t m, n, k;
  MatmulState operations;
  MatrixLayoutState a, b, c, d;

  static int read(MatmulDescriptor matmul, MatrixLayout a, MatrixLayout b,
                  MatrixLayout c, MatrixLayout d, Matmul &result);
  template <typename Sum>
  void run(float alpha, const void *a, const void *b, float beta, const void *c,
           void *d) const;
};

/// A matrix in memory, of f32 or bf16.
struct Elements {
  const void *data;
  const MatrixLayoutState &layout;

  float get(int32_t batch, uint64_t row, uint64_t column) const {
    int64_t at = batch * layout.batchStride + int64_t(column) * layout.leading +
                 int64_t(row);
    return layout.type == CUDA_R_16BF
               ? fromBf16(static_cast<const uint16_t *>(data)[at])
               : static_cast<const float *>(data)[at];
  }
  void set(int32_t batch, uint64_t row, uint64_t column, float value) const {
    int64_t at = batch * layout.batchStride + int64_t(column) * layout.leading +
                 int64_t(row);
    if (layout.type == CUDA_R_16BF)
      static_cast<uint16_t *>(const_cast<void *>(data))[at] =
          roundToBf16(value);
    else
      static_cast<float *>(const_cast<void *>(data))[at] = value;
  }
};

} // namespace

int Matmul::read(MatmulDescriptor matmul, MatrixLayout a, MatrixLayout b,
                 MatrixLayout c, MatrixLayout d, Matmul &result) {
  for (MatrixLayout layout : {a, b, c, d})
    if (!layout || !layout->isValid() || layout->batch != d->batch)
      return CUBLAS_STATUS_INVALID_VALUE;
  bool ta = matmul->transposeA == CUBLAS_OP_T,
       tb = matmul->transposeB == CUBLAS_OP_T;
  result = {d->rows, d->columns, ta ? a->rows : a->columns, *matmul, *a, *b,
            *c,      *d};
  bool fits = (ta ? a->columns : a->rows) == result.m &&
              (tb ? b->columns : b->rows) == result.k &&
              (tb ? b->rows : b->columns) == result.n && c->rows == result.m &&
              c->columns == result.n;
  // Factors of one type; of bf16, the result may be f32.
  if (a->type != b->type || c->type != d->type ||
      (d->type != a->type && d->type != CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (matmul->hasBias() && d->type != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

emulated::EpilogueKind emulated::epilogueKind = EpilogueKind::LikeKernels;

/// Adds a bias to a sum and bounds it, as a library might.
static float finish(float sum, const float *bias, bool hasRelu) {
  using emulated::EpilogueKind;
  auto flush = [](float value) {
    bool isFlushed = emulated::epilogueKind != EpilogueKind::KeepsSubnormal &&
                     std::fabs(value) < std::numeric_limits<float>::min();
    return isFlushed ? std::copysign(0.0f, value) : value;
  };
  float result = flush(sum);
  if (bias)
    result = flush(result + flush(*bias));
  bool isDropped =
      std::isnan(result) && emulated::epilogueKind == EpilogueKind::DropsNaN;
  return hasRelu && (result <= 0.0f || isDropped) ? 0.0f : result;
}

/// Adds up in `Sum`.
template <typename Sum>
void Matmul::run(float alpha, const void *a, const void *b, float beta,
                 const void *c, void *d) const {
  bool ta = operations.transposeA == CUBLAS_OP_T,
       tb = operations.transposeB == CUBLAS_OP_T;
  auto read = [&](float operand) {
    return operations.isTf32 ? emulated::roundToTf32(operand) : operand;
  };
  // The left operand by columns, and the sums of a column of the result.
  std::vector<float> left(m * k);
  std::vector<Sum> sums(m);
  const auto *bias =
      operations.hasBias()
          ? static_cast<const float *>(atAddress(operations.bias))
          : nullptr;
  const Elements fromA{a, this->a}, fromB{b, this->b}, fromC{c, this->c},
      to{d, this->d};
  for (int32_t batch = 0; batch < this->d.batch; ++batch) {
    for (uint64_t p = 0; p < k; ++p)
      for (uint64_t i = 0; i < m; ++i)
        left[p * m + i] =
            read(ta ? fromA.get(batch, p, i) : fromA.get(batch, i, p));
    for (uint64_t j = 0; j < n; ++j) {
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (uint64_t p = 0; p < k; ++p) {
        Sum right = read(tb ? fromB.get(batch, j, p) : fromB.get(batch, p, j));
        for (uint64_t i = 0; i < m; ++i)
          sums[i] += left[p * m + i] * right;
      }
      for (uint64_t i = 0; i < m; ++i) {
        // With beta = 0, C is not read: it may hold anything.
        double added =
            beta == 0.0f ? 0.0 : double(beta) * fromC.get(batch, i, j);
        auto sum = float(double(alpha) * sums[i] + added);
        bool isPlain = operations.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
        to.set(batch, i, j,
               isPlain ? sum
                       : finish(sum, bias ? bias + i : nullptr,
                                operations.hasRelu()));
      }
    }
  }
}

static int getHeuristic(CublasLtHandle, MatmulDescriptor matmul, MatrixLayout a,
                        MatrixLayout b, MatrixLayout c, MatrixLayout d,
                        MatmulPreference preference, int wanted,
                        MatmulChoice *choices, int *count) {
  Matmul product;
  if (wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (int status = Matmul::read(matmul, a, b, c, d, product))
    return status;
  // The fastest one adds partial sums in place, in any order. The last has
  // none, and is always allowed.
  *count = 0;
  for (uint32_t scheme : {CUBLASLT_REDUCTION_SCHEME_INPLACE,
                          CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                          CUBLASLT_REDUCTION_SCHEME_NONE}) {
    if ((scheme && !(scheme & preference->reductionSchemes)) ||
        *count == wanted)
      continue;
    Algorithm algorithm = {
        std::min<uint64_t>(preference->workspaceBytes, kClaimedWorkspace),
        {},
        scheme};
    std::copy_n(preference->alignments, 4, algorithm.alignments);
    MatmulChoice &choice = choices[(*count)++];
    choice = {};
    std::memcpy(&choice.algorithm, &algorithm, sizeof(algorithm));
    choice.workspaceBytes = algorithm.workspaceBytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static int getAlgorithmAttribute(const MatmulAlgorithm *algorithm,
                                 int attribute, void *value, size_t bytes,
                                 size_t *written) {
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (attribute != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ||
      bytes != sizeof(chosen.reductionScheme))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &chosen.reductionScheme, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

static int checkAlgorithm(CublasLtHandle, MatmulDescriptor matmul,
                          MatrixLayout a, MatrixLayout b, MatrixLayout c,
                          MatrixLayout d, const MatmulAlgorithm *algorithm,
                          MatmulChoice *result) {
  Matmul product;
  if (int status = Matmul::read(matmul, a, b, c, d, product))
    return status;
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.mark != Algorithm::kMark)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (matmul->epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      emulated::epilogueKind == emulated::EpilogueKind::None)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->algorithm = *algorithm;
  result->workspaceBytes = chosen.workspaceBytes;
  return CUBLAS_STATUS_SUCCESS;
}

static bool isAligned(const void *address, uint64_t alignment) {
  return reinterpret_cast<uint64_t>(address) % alignment == 0;
}

static int runMatmul(CublasLtHandle, MatmulDescriptor matmul, const void *alpha,
                     const void *a, MatrixLayout layoutA, const void *b,
                     MatrixLayout layoutB, const void *beta, const void *c,
                     MatrixLayout layoutC, void *d, MatrixLayout layoutD,
                     const MatmulAlgorithm *algorithm, void *workspace,
                     size_t workspaceBytes, Stream stream) {
  Matmul product;
  if (int status =
          Matmul::read(matmul, layoutA, layoutB, layoutC, layoutD, product))
    return status;
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  const void *operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (!isAligned(operands[i], chosen.alignments[i]))
      return CUBLAS_STATUS_INVALID_VALUE;
  if (matmul->hasBias() && !matmul->bias)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (workspaceBytes < chosen.workspaceBytes ||
      (chosen.workspaceBytes && !isAligned(workspace, 256)))
    return CUBLAS_STATUS_INVALID_VALUE;
  emulated::enqueue(stream, [=, alpha = *static_cast<const float *>(alpha),
                             beta = *static_cast<const float *>(beta)] {
    if (chosen.workspaceBytes)
      std::fill_n(static_cast<float *>(atAddress(workspace)),
                  chosen.workspaceBytes / sizeof(float),
                  std::numeric_limits<float>::quiet_NaN());
    if (!chosen.isPlain())
      emulated::beSlow();
    auto run = chosen.isPlain() ? &Matmul::run<float> : &Matmul::run<double>;
    (product.*run)(alpha, atAddress(a), atAddress(b), beta, atAddress(c),
                   atAddress(d));
  });
  return CUBLAS_STATUS_SUCCESS;
}

constinit const CublasLt emulated::cublasLt = {getCublasLtVersion,
                                               getStatusName,
                                               create,
                                               destroy,
                                               createLayout,
                                               destroyLayout,
                                               setLayoutAttribute,
                                               createMatmul,
                                               destroyMatmul,
                                               setMatmulAttribute,
                                               createPreference,
                                               destroyPreference,
                                               setPreferenceAttribute,
                                               getHeuristic,
                                               getAlgorithmAttribute,
                                               checkAlgorithm,
                                               runMatmul};
