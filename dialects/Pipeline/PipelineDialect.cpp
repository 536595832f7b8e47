//===- PipelineDialect.cpp - The pipeline dialect -------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers attributes and ops; custom syntax and small accessors. Verifiers
// are in PipelineVerifiers.cpp.
//===----------------------------------------------------------------------===//

#include "dialects/Pipeline/Pipeline.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace penstock::pipeline;

#include "dialects/Pipeline/PipelineAttrInterfaces.cpp.inc"
#include "dialects/Pipeline/PipelineDialect.cpp.inc"
#include "dialects/Pipeline/PipelineEnums.cpp.inc"
#include "dialects/Pipeline/PipelineInterfaces.cpp.inc"

/// A number of type f64, without its type.
static FailureOr<FloatAttr> parseF64(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return parser.getBuilder().getF64FloatAttr(value);
}

/// `name, key = value, ...`; numbers without their types.
static ParseResult parseRow(AsmParser &parser, std::string &kind,
                            DictionaryAttr &parameters) {
  if (parser.parseKeywordOrString(&kind))
    return failure();
  NamedAttrList values;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    Attribute value;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual() ||
        parser.parseAttribute(value))
      return failure();
    if (values.get(key))
      return parser.emitError(loc) << key << " is given twice";
    values.set(key, value);
  }
  parameters = values.getDictionary(parser.getContext());
  return success();
}

static void printRow(AsmPrinter &printer, StringRef kind,
                     DictionaryAttr parameters) {
  printer.printKeywordOrString(kind);
  for (NamedAttribute parameter : parameters) {
    printer << ", " << parameter.getName().getValue() << " = ";
    if (auto number = dyn_cast<FloatAttr>(parameter.getValue());
        number && number.getType().isF64())
      printer.printFloat(number.getValue());
    else
      printer.printAttributeWithoutType(parameter.getValue());
  }
}

/// The name behind a kind, where there is one: `"x"`.
static ParseResult parseEndName(AsmParser &parser, StringAttr &name) {
  OptionalParseResult result = parser.parseOptionalAttribute(name);
  return result.has_value() ? *result : ParseResult(success());
}

static void printEndName(AsmPrinter &printer, StringAttr name) {
  if (name)
    printer << ' ' << name;
}

static FailureOr<Attribute> parseTerm(AsmParser &parser) {
  MLIRContext *context = parser.getContext();
  StringAttr name;
  std::string text;
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalSymbolName(name))) {
    auto symbol = FlatSymbolRefAttr::get(name);
    int64_t index = 0;
    if (failed(parser.parseOptionalLSquare()))
      return Attribute(symbol);
    if (parser.parseInteger(index) || parser.parseRSquare())
      return failure();
    return Attribute(FieldAttr::get(context, symbol, index));
  }
  if (succeeded(parser.parseOptionalString(&text)))
    return Attribute(StringAttr::get(context, text));
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "_")
    return Attribute(UnitAttr::get(context));
  if (std::optional<Role> role = symbolizeRole(keyword))
    return Attribute(RoleAttr::get(context, *role));
  return parser.emitError(loc) << "expected a symbol, a role, a name or _";
}

/// `(@x, @s0.forward[1], parameter, "lr", @loss | @y, _)`.
static ParseResult parseTerms(AsmParser &parser, ArrayAttr &terms) {
  SmallVector<Attribute> list;
  auto parseAlternatives = [&]() -> ParseResult {
    SmallVector<Attribute> several;
    do {
      FailureOr<Attribute> term = parseTerm(parser);
      if (failed(term))
        return failure();
      several.push_back(*term);
    } while (succeeded(parser.parseOptionalVerticalBar()));
    list.push_back(several.size() == 1
                       ? several.front()
                       : ArrayAttr::get(parser.getContext(), several));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     parseAlternatives))
    return failure();
  terms = ArrayAttr::get(parser.getContext(), list);
  return success();
}

void penstock::pipeline::printTerm(llvm::raw_ostream &stream, Attribute term) {
  if (auto several = dyn_cast<ArrayAttr>(term))
    llvm::interleave(
        several, stream, [&](Attribute one) { printTerm(stream, one); }, " | ");
  else if (auto field = dyn_cast<FieldAttr>(term))
    stream << field.getSymbol() << '[' << field.getIndex() << ']';
  else if (auto role = dyn_cast<RoleAttr>(term))
    stream << stringifyRole(role.getValue());
  else if (isa<UnitAttr>(term))
    stream << '_';
  else
    stream << term;
}

static void printTerms(AsmPrinter &printer, ArrayAttr terms) {
  printer << '(';
  llvm::interleaveComma(terms, printer, [&](Attribute term) {
    printTerm(printer.getStream(), term);
  });
  printer << ')';
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Pipeline/PipelineAttributes.cpp.inc"

void PipelineDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Pipeline/PipelineAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Pipeline/PipelineOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// `(%k) { ... }`, or nothing for a declaration. The counter is an index.
static ParseResult parseTaskBody(OpAsmParser &parser, Region &body) {
  if (parser.parseOptionalLParen())
    return success();
  OpAsmParser::Argument counter;
  if (parser.parseArgument(counter) || parser.parseRParen())
    return failure();
  counter.type = parser.getBuilder().getIndexType();
  return parser.parseRegion(body, counter);
}

static void printTaskBody(OpAsmPrinter &printer, Operation *, Region &body) {
  if (body.empty())
    return;
  printer << '(' << body.getArgument(0) << ") ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

/// A region whose empty form is left out.
static ParseResult parseOptionalBody(OpAsmParser &parser, Region &body) {
  OptionalParseResult result = parser.parseOptionalRegion(body);
  if (result.has_value() && succeeded(*result) && body.empty())
    body.emplaceBlock();
  return result.has_value() ? *result : ParseResult(success());
}

static void printOptionalBody(OpAsmPrinter &printer, Operation *,
                              Region &body) {
  if (!body.empty()) {
    printer << ' ';
    printer.printRegion(body);
  }
}

/// A kind, followed by the name of an input or output: `input "x"`, `loss`.
template <typename Attr, typename Kind>
static ParseResult parseEnd(OpAsmParser &parser, Attr &end, StringRef expected,
                            std::optional<Kind> (*symbolize)(StringRef)) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&keyword)) || !symbolize(keyword))
    return parser.emitError(loc) << "expected " << expected;
  StringAttr name;
  if (failed(parseEndName(parser, name)))
    return failure();
  end = Attr::getChecked([&] { return parser.emitError(loc); },
                         parser.getContext(), *symbolize(keyword), name);
  return success(!!end);
}

template <typename Attr> static void printEnd(OpAsmPrinter &printer, Attr end) {
  printer << end.getKind();
  printEndName(printer, end.getName());
}

/// T, or T -> R where the result has another type.
static ParseResult parseAdjustedTypes(OpAsmParser &parser, Type &weight,
                                      Type &result) {
  if (parser.parseType(weight))
    return failure();
  result = weight;
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(result);
  return success();
}

static void printAdjustedTypes(OpAsmPrinter &printer, Operation *, Type weight,
                               Type result) {
  printer << weight;
  if (result != weight)
    printer << " -> " << result;
}

static ParseResult parseSourceEnd(OpAsmParser &parser, SourceAttr &source) {
  return parseEnd(parser, source, "input \"NAME\" or labels",
                  symbolizeSourceKind);
}

static void printSourceEnd(OpAsmPrinter &printer, Operation *,
                           SourceAttr source) {
  printEnd(printer, source);
}

static ParseResult parseSinkEnd(OpAsmParser &parser, SinkAttr &sink) {
  return parseEnd(parser, sink,
                  "loss, correct, count, output \"NAME\" or "
                  "metric \"NAME\"",
                  symbolizeSinkKind);
}

static void printSinkEnd(OpAsmPrinter &printer, Operation *, SinkAttr sink) {
  printEnd(printer, sink);
}

/// The count of `times n`; the other loops have none.
static ParseResult parseRepeatCount(OpAsmParser &parser, IntegerAttr &count) {
  int64_t value;
  OptionalParseResult result = parser.parseOptionalInteger(value);
  if (!result.has_value())
    return success();
  count = parser.getBuilder().getI64IntegerAttr(value);
  return *result;
}

static void printRepeatCount(OpAsmPrinter &printer, Operation *,
                             IntegerAttr count) {
  if (count)
    printer << ' ' << count.getValue();
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

StringRef SourceAttr::getEndpoint() {
  return getName() ? getName().getValue() : stringifySourceKind(getKind());
}

void TaskOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  if (!region.empty())
    setName(region.getArgument(0), countsMicrobatches() ? "k" : "t");
}

// Device programs are read by people: values are called after what they hold.
void SlotOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getField())
    setName(getBuffer(), (getSymbol() + "." + Twine(*getField())).str());
  else
    setName(getBuffer(), getSymbol());
}

void ScratchOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), "scratch");
}

void HyperparameterOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), getName());
}

bool TaskOp::countsMicrobatches() {
  return getKind() != TaskKind::Norm && getKind() != TaskKind::Update &&
         !countsWaves();
}

bool TaskOp::countsWaves() {
  return getKind() == TaskKind::Push || getKind() == TaskKind::Fold;
}

char TaskOp::getLetter() { return "FBIWGUEPS"[static_cast<int>(getKind())]; }

Block *TaskOp::addBody() {
  Block &block = getBody().emplaceBlock();
  block.addArgument(IndexType::get(getContext()), getLoc());
  return &block;
}

TrainingOp penstock::pipeline::getTraining(ModuleOp module) {
  for (; module; module = module->getParentOfType<ModuleOp>())
    for (auto training : module.getOps<TrainingOp>())
      return training;
  return {};
}

TrainingOp penstock::pipeline::addTraining(ModuleOp module,
                                           OptimizerAttr optimizer) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  return TrainingOp::create(
      builder, module.getLoc(), optimizer ? UnitAttr() : builder.getUnitAttr(),
      builder.getI64IntegerAttr(1), optimizer, RateAttr(), ClippingAttr(),
      BatchNormAttr::get(module.getContext(), BatchNorm::Train),
      PrecisionAttr::get(module.getContext(), Precision::F32), MethodAttr());
}

FailureOr<TrainingOp> penstock::pipeline::requireTraining(ModuleOp module) {
  if (TrainingOp training = getTraining(module))
    return training;
  return module.emitError("C32: has no pipeline.training, which says how it "
                          "trains: run pipeline-set-training");
}

TargetAttrInterface penstock::pipeline::getTarget(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    function = op->getParentOfType<func::FuncOp>();
  return function ? function->getAttrOfType<TargetAttrInterface>(kTargetAttr)
                  : TargetAttrInterface();
}

bool penstock::pipeline::isOfKind(func::FuncOp function, StringRef kind) {
  TargetAttrInterface target = getTarget(function);
  return kind.empty() || !target || target.getDialect().getNamespace() == kind;
}

int64_t WeightStashOp::getVersions() { return getDepth(); }
int64_t DoubleBufferOp::getVersions() { return 2; }

#define GET_OP_CLASSES
#include "dialects/Pipeline/PipelineOps.cpp.inc"
