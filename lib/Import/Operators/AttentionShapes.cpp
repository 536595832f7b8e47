//===- AttentionShapes.cpp - Operands of an Attention node ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors say which operands do not fit each other.
//===----------------------------------------------------------------------===//

#include "AttentionShapes.h"

#include <cmath>

using namespace mlir;
using namespace penstock::onnx;

LogicalResult Attention::bindShapes(NodeBinder &node) {
  int64_t rank = node.rank(Query);
  isFlat = rank == 3;
  if (rank != 3 && rank != 4)
    return node.error() << "operand 'Q' is " << node.type(Query)
                        << ", it must have 3 or 4 axes";
  for (unsigned i : {Key, Values})
    if (failed(node.requireSameElementType(Query, i)))
      return failure();
    else if (node.rank(i) != rank)
      return node.error() << "operand '" << node.operandName(i) << "' is "
                          << node.type(i) << ", it must have as many axes as "
                          << "'Q', which is " << node.type(Query);
  std::optional<int64_t> givenHeads, givenGroups;
  if (failed(node.attribute("q_num_heads", givenHeads)) ||
      failed(node.attribute("kv_num_heads", givenGroups)))
    return failure();
  ArrayRef<int64_t> q = node.shape(Query), k = node.shape(Key),
                    v = node.shape(Values);
  if (isFlat) {
    if (!givenHeads || !givenGroups)
      return node.error() << "operands of 3 axes need the attributes "
                             "'q_num_heads' and 'kv_num_heads'";
    heads = *givenHeads;
    groups = *givenGroups;
    if (heads < 1 || groups < 1 || q[2] % heads || k[2] % groups ||
        v[2] % groups)
      return node.error() << "attributes 'q_num_heads' = " << heads
                          << " and 'kv_num_heads' = " << groups
                          << " do not divide the last axes of "
                          << node.type(Query) << ", " << node.type(Key)
                          << " and " << node.type(Values);
    size = q[2] / heads;
    valueSize = v[2] / groups;
    if (k[2] / groups != size)
      return node.error() << "heads of 'Q' have " << size
                          << " elements, those of 'K' " << k[2] / groups;
  } else {
    heads = q[1];
    groups = k[1];
    size = q[3];
    valueSize = v[3];
    if (v[1] != groups || k[3] != size ||
        (givenHeads && *givenHeads != heads) ||
        (givenGroups && *givenGroups != groups))
      return node.error() << "the heads of " << node.type(Query) << ", "
                          << node.type(Key) << " and " << node.type(Values)
                          << " do not fit each other";
  }
  batch = q[0];
  queries = q[isFlat ? 1 : 2];
  keys = k[isFlat ? 1 : 2];
  if (k[0] != batch || v[0] != batch || v[isFlat ? 1 : 2] != keys)
    return node.error() << "batches or sequences of " << node.type(Query)
                        << ", " << node.type(Key) << " and "
                        << node.type(Values) << " differ";
  if (groups == 0 || heads % groups != 0)
    return node.error() << heads << " heads of queries cannot share " << groups
                        << " heads of keys";
  return success();
}

/// Keys and values of earlier steps, [batch, heads, steps, size].
LogicalResult Attention::bindPast(NodeBinder &node) {
  if (node.has(PastKey) != node.has(PastValue))
    return node.error() << "has one of 'past_key' and 'past_value'; it needs "
                           "both or neither";
  if (!node.has(PastKey))
    return success();
  bool fits = node.rank(PastKey) == 4 && node.rank(PastValue) == 4;
  if (fits) {
    past = node.shape(PastKey)[2];
    fits = node.shape(PastKey) == ArrayRef({batch, groups, past, size}) &&
           node.shape(PastValue) == ArrayRef({batch, groups, past, valueSize});
  }
  if (!fits || failed(node.requireSameElementType(Query, PastKey)) ||
      failed(node.requireSameElementType(Query, PastValue)))
    return node.error() << "operands 'past_key' and 'past_value' are "
                        << node.type(PastKey) << " and " << node.type(PastValue)
                        << ", which are no earlier steps of " << node.type(Key)
                        << " and " << node.type(Values);
  keys += past;
  return success();
}

LogicalResult Attention::bindMask(NodeBinder &node) {
  if (!node.has(Mask))
    return success();
  if (!node.elementType(Mask).isInteger(1) &&
      failed(node.requireSameElementType(Query, Mask)))
    return failure();
  mask.assign(4, 1);
  ArrayRef<int64_t> given = node.shape(Mask);
  const int64_t full[] = {batch, heads, queries, keys};
  bool fits = given.size() <= 4;
  for (size_t i = 0; fits && i < given.size(); ++i) {
    size_t axis = 4 - given.size() + i;
    mask[axis] = given[i];
    fits = given[i] == 1 || given[i] == full[axis];
  }
  if (!fits)
    return node.error() << "operand 'attn_mask' is " << node.type(Mask)
                        << ", which does not broadcast to " << batch << "x"
                        << heads << "x" << queries << "x" << keys;
  return success();
}

LogicalResult Attention::bind(NodeBinder &node) {
  if (failed(node.operands(
          {"Q", "K", "V", "attn_mask", "past_key", "past_value"}, 3)) ||
      failed(node.requireFloat(Query)) || failed(bindShapes(node)) ||
      failed(node.attribute("is_causal", isCausal)) || failed(bindPast(node)) ||
      failed(bindMask(node)) || failed(node.attribute("softcap", softcap)) ||
      failed(node.attribute("qk_matmul_output_mode", outputMode)))
    return failure();
  for (StringRef name : {"left_window_size", "right_window_size"}) {
    int64_t reach = -1;
    if (failed(node.attribute(name, reach)))
      return failure();
    if (reach != -1)
      return node.error() << "attribute '" << name
                          << "' is of a later version; use a mask";
  }
  if (softcap < 0)
    return node.badAttribute("softcap", "a number that is not negative");
  if (outputMode < 0 || outputMode > 3)
    return node.badAttribute("qk_matmul_output_mode", "0, 1, 2 or 3");
  scale = size ? 1 / std::sqrt(static_cast<double>(size)) : 1;
  return node.attribute("scale", scale);
}
