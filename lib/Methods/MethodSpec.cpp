//===- MethodSpec.cpp - The table of methods ------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each row has a file; a line in Methods.def lists it.
//===----------------------------------------------------------------------===//

#include "penstock/Methods/MethodSpec.h"

#include "MethodTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace penstock;

namespace {

/// Our own rows, and behind them those of plug-ins.
struct Registry {
  std::vector<const SpecKind *> rows = {
#define PENSTOCK_METHOD(NAME) &get##NAME(),
#include "Methods.def"
#undef PENSTOCK_METHOD
  };
  SpecTable table = {"method", rows};
};

} // namespace

static Registry &getRegistry() {
  static Registry registry;
  return registry;
}

static const SpecTable &getTable() { return getRegistry().table; }

void penstock::addMethod(const Method &method) {
  Registry &registry = getRegistry();
  registry.rows.push_back(&method);
  registry.table.kinds = registry.rows;
}

MethodSpec::MethodSpec() : Spec(getSync()) {}

const Method &MethodSpec::getMethod() const {
  return static_cast<const Method &>(getKind());
}

bool MethodSpec::isAsynchronous() const { return !getMethod().flushes(); }

pipeline::MethodAttr MethodSpec::toAttr(MLIRContext *context) const {
  return pipeline::MethodAttr::get(context, getName(),
                                   pipeline::getParameters(*this, context));
}

MethodSpec MethodSpec::fromAttr(pipeline::MethodAttr attr) {
  return attr ? MethodSpec(pipeline::getSpec(getTable(), attr)) : MethodSpec();
}

FailureOr<MethodSpec> penstock::parseMethodSpec(StringRef text,
                                                std::string &error) {
  std::optional<Spec> spec = parseSpec(text, getTable(), error);
  if (!spec)
    return failure();
  return MethodSpec(std::move(*spec));
}

MethodSpec penstock::getMethodNamed(StringRef name) {
  return MethodSpec(Spec(*getTable().find(name)));
}

LogicalResult penstock::checkMethod(const MethodSpec &method,
                                    int64_t microbatches,
                                    ArrayRef<int64_t> replicas,
                                    const OptimizerSpec &optimizer,
                                    std::string &error) {
  auto emitter = Optimizer::create(optimizer);
  error = method.getMethod().checkUse(method, microbatches, replicas, *emitter);
  if (error.empty() && !emitter->isElementwise() &&
      method.getMethod().extendsUpdates(method))
    error = "adjusts each element of a weight by itself, and " +
            optimizer.getName().str() +
            " updates whole tensors: choose another optimizer";
  return success(error.empty());
}

LogicalResult penstock::checkMethodDepth(const MethodSpec &method,
                                         ArrayRef<int64_t> replicas,
                                         int64_t microbatches,
                                         std::string &error) {
  error = method.getMethod().checkDepth(replicas, microbatches);
  return success(error.empty());
}

LogicalResult
penstock::checkMethodSchedule(const MethodSpec &method,
                              const schedule::ScheduleSpec &schedule,
                              std::string &error) {
  const Method &row = method.getMethod();
  error.clear();
  if (row.runsUnder(method, schedule))
    return success();
  if (row.flushes()) {
    error = "updates overlap, which --method=" + method.getText() +
            " does not allow: use a method that is asynchronous, or leave "
            "--schedule out";
    return failure();
  }
  std::string own = row.getSchedule(method).getText();
  schedule::ScheduleSpec open = schedule::getScheduleNamed("nf1b");
  if (own != open.getName() && row.runsUnder(method, open))
    own += " or " + open.getName().str();
  error = "--method=" + method.getText() + " runs " + own +
          " without flushes; leave --schedule out, or use --method=sync";
  return failure();
}

bool penstock::allowsStage(const MethodSpec &method, int64_t replicas,
                           int64_t after, int64_t microbatches) {
  return method.getMethod().allowsStage(replicas, after, microbatches);
}

std::vector<std::string> penstock::getMethodNames() {
  return getTable().getNames();
}

std::string penstock::listMethods() {
  return llvm::join(getMethodNames(), ", ");
}

std::string penstock::listMethodsKeepingWeights() {
  SmallVector<StringRef> names;
  for (const SpecKind *row : getTable().kinds)
    if (auto *method = static_cast<const Method *>(row);
        method->keepsForwardWeights(MethodSpec(Spec(*row))))
      names.push_back(row->name);
  return llvm::join(names, ", ");
}

void penstock::registerMethods(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, pipeline::PipelineDialect *dialect) {
    dialect->addTable(pipeline::MethodAttr::getMnemonic(), getTable());
  });
}
