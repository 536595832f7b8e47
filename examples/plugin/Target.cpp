// --target=scalar: devices of the host whose kernels are plain loops, an
// element at a time and in the order as written, by one thread. Products are
// those of the CPU's library, and the runtime's devices are the CPU's.

#include "Example.h"

#include "dialects/Cpu/Cpu.h"
#include "passes/Kernels/Passes.h"
#include "penstock/Driver/Options.h"
#include "penstock/Driver/Registration.h"
#include "penstock/Target/Target.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace penstock;

namespace example {

//===--- The dialect: what a device is ---===//

class ScalarTargetAttr
    : public Attribute::AttrBase<ScalarTargetAttr, Attribute, AttributeStorage,
                                 TargetAttrInterface::Trait> {
public:
  using Base::Base;
  static constexpr StringLiteral name = "scalar.target";
  int64_t getThreads() const { return 1; }
};

/// The target of the CPU that does what is not particular to this one.
static TargetAttrInterface getHost(MLIRContext *context) {
  return cpu::TargetAttr::get(context, /*threads=*/1, "native");
}

//===--- What the compiler asks of it ---===//

class ScalarTarget : public Target {
public:
  using Target::Target;

  /// The config is one of the CPU's, which describes the call then.
  FailureOr<LibraryPlan> plan(TargetAttrInterface target,
                              kernel::LibraryCallOpInterface call,
                              std::string &reason) const override {
    TargetAttrInterface host = getHost(target.getContext());
    return get(host)->plan(host, call, reason);
  }
  FailureOr<std::optional<WeightPacking>>
  planPacking(TargetAttrInterface, kernel::LibraryCallOpInterface,
              std::string &) const override {
    return std::optional<WeightPacking>();
  }
  bool takesConvolution(TargetAttrInterface, const kernel::ConvolutionShape &,
                        bool, std::string &reason) const override {
    reason = "convolutions are loops here";
    return false;
  }
  std::optional<CallDescriptor>
  describe(kernel::LibraryCallOpInterface) const override {
    return std::nullopt;
  }
  std::optional<CallDescriptor>
  describe(kernel::PackingAttrInterface) const override {
    return std::nullopt;
  }
  MachineRates getRates(TargetAttrInterface) const override { return {}; }

  FailureOr<DeviceDescription> describe(TargetAttrInterface target,
                                        Location loc) const override {
    TargetAttrInterface host = getHost(target.getContext());
    return get(host)->describe(host, loc);
  }
  std::string getHostProcessor(TargetAttrInterface target) const override {
    TargetAttrInterface host = getHost(target.getContext());
    return get(host)->getHostProcessor(host);
  }
  std::vector<std::string>
  getLinkLibraries(TargetAttrInterface target) const override {
    TargetAttrInterface host = getHost(target.getContext());
    return get(host)->getLinkLibraries(host);
  }
};

class ScalarDialect : public Dialect {
public:
  static constexpr StringLiteral getDialectNamespace() { return "scalar"; }

  explicit ScalarDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<ScalarDialect>()) {
    context->getOrLoadDialect<cpu::CpuDialect>();
    addAttributes<ScalarTargetAttr>();
    addInterfaces<ScalarTarget>();
  }

  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    if (failed(parser.parseKeyword("target")))
      return {};
    return ScalarTargetAttr::get(getContext());
  }
  void printAttribute(Attribute, DialectAsmPrinter &printer) const override {
    printer << "target";
  }
};

//===--- Its code ---===//

/// Writes the kernels of such devices as loops.
struct ScalarLoops : PassWrapper<ScalarLoops, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScalarLoops)

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<affine::AffineDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() override {
    if (!isa_and_nonnull<ScalarTargetAttr>(pipeline::getTarget(getOperation())))
      return;
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](linalg::LinalgOp op) {
      rewriter.setInsertionPoint(op);
      if (failed(linalg::linalgOpToLoops(rewriter, op)))
        return signalPassFailure();
      rewriter.eraseOp(op);
    });
  }
};

static void buildKernelPipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(std::make_unique<ScalarLoops>());
  PipelineApproximateMathOptions math;
  math.kind = ScalarDialect::getDialectNamespace().str();
  manager.addPass(createPipelineApproximateMath(math));
}

static void registerPipeline() {
  registerKernelPipeline(ScalarDialect::getDialectNamespace(),
                         buildKernelPipeline);
}

void registerTarget() {
  addTargetKind(
      {ScalarDialect::getDialectNamespace(),
       [](DialectRegistry &registry) { registry.insert<ScalarDialect>(); },
       registerPipeline,
       [](MLIRContext *context, const CompileOptions &) -> TargetAttrInterface {
         return ScalarTargetAttr::get(context);
       }});
}

} // namespace example
