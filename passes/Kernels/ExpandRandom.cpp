//===- ExpandRandom.cpp - Philox becomes integer arithmetic ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ten rounds of two products of 32 bits, without a branch or a table: vectors
// of elements go through them as one does. Constants as in Salmon et al., SC
// 2011.
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "passes/Kernels/Composites.h"
#include "penstock/Support/Scalars.h"

using namespace mlir;
using namespace penstock;

namespace {

struct Philox : Scalars {
  using Scalars::Scalars;

  Value word(uint32_t value) {
    return integer(builder.getI32Type(), static_cast<int32_t>(value));
  }
  Value low(Value wide) {
    return make<arith::TruncIOp>(builder.getI32Type(), wide);
  }
  Value high(Value wide) {
    Value shift = integer(builder.getI64Type(), 32);
    return low(make<arith::ShRUIOp>(wide, shift));
  }

  /// One round on the counter, with the key.
  void round(Value (&counter)[4], Value key0, Value key1) {
    Value product0 = multiply(0xD2511F53, counter[0]);
    Value product1 = multiply(0xCD9E8D57, counter[2]);
    Value next[4] = {mix(high(product1), counter[1], key0), low(product1),
                     mix(high(product0), counter[3], key1), low(product0)};
    llvm::copy(next, counter);
  }

private:
  Value multiply(uint32_t factor, Value word) {
    Value constant = integer(builder.getI64Type(), factor);
    return mul(constant, make<arith::ExtUIOp>(builder.getI64Type(), word));
  }
  Value mix(Value a, Value b, Value c) {
    return make<arith::XOrIOp>(make<arith::XOrIOp>(a, b), c);
  }
};

struct ExpandRandomBits : OpRewritePattern<nn::RandomBitsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::RandomBitsOp op,
                                PatternRewriter &rewriter) const override {
    constexpr int rounds = 10;
    Philox philox(rewriter, op.getLoc());
    Value counter[4] = {
        philox.low(op.getElement()), philox.high(op.getElement()),
        philox.low(op.getMicrobatch()), philox.high(op.getMicrobatch())};
    Value seed = philox.low(op.getSeed());
    Value node =
        philox.add(philox.high(op.getSeed()), philox.word(op.getNode()));
    for (uint32_t i = 0; i < rounds; ++i) {
      // Both halves of the key grow by a constant from round to round.
      Value key0 = philox.add(seed, philox.word(i * 0x9E3779B9u));
      Value key1 = philox.add(node, philox.word(i * 0xBB67AE85u));
      philox.round(counter, key0, key1);
    }
    rewriter.replaceOp(op, counter[0]);
    return success();
  }
};

} // namespace

void penstock::populateExpandRandom(RewritePatternSet &patterns) {
  patterns.add<ExpandRandomBits>(patterns.getContext());
}
