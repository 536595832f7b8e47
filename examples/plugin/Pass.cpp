// example-list-channels: a remark per channel between tasks, with the bytes
// of a message. From level `stages` on.

#include "Example.h"

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace penstock;

namespace {

struct ListChannels : PassWrapper<ListChannels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ListChannels)

  StringRef getArgument() const override { return "example-list-channels"; }
  StringRef getDescription() const override {
    return "Lists the channels between tasks, with the bytes of a message";
  }

  void runOnOperation() override {
    for (auto channel : getOperation().getOps<pipeline::ChannelOp>()) {
      if (channel.getSource() || channel.getSink())
        continue;
      int64_t bytes = 0;
      for (unsigned field = 0; field < channel.getTypes().size(); ++field) {
        RankedTensorType type = channel.getTensorType(field);
        bytes += type.getNumElements() *
                 llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      }
      channel.emitRemark("channel ")
          << channel.getSymName() << " carries " << bytes << " bytes";
    }
    markAllAnalysesPreserved();
  }
};

} // namespace

void example::registerPass() { PassRegistration<ListChannels>(); }
