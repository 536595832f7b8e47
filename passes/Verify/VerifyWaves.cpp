//===- VerifyWaves.cpp - What workers push and fold -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule C31. With it and S10, the weights of every worker follow
// from the waves alone: each is pushed to all others, and folded in the order
// of the workers, into the same global weights.
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "penstock/Optimizers/Optimizers.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace penstock;
using namespace penstock::pipeline;

namespace {

class WaveRules {
public:
  WaveRules(Subject &subject, ScheduleOp schedule, ArrayRef<TaskOp> tasks);
  LogicalResult verify();

private:
  struct StageTasks {
    TaskOp update, push, fold;
  };

  void collectWaves(TaskOp push, int64_t worker);
  LogicalResult verifyStage(StageOp stage, StageTasks own);
  LogicalResult verifyPush(TaskOp push);
  LogicalResult verifyFold(TaskOp fold, int64_t worker);
  LogicalResult verifyFoldCall(TaskOp fold, int64_t worker, func::CallOp call);
  LogicalResult verifyAverage(WriteOp write);
  LogicalResult verifyEntries();
  bool isWeight(FlatSymbolRefAttr name) {
    auto variable = subject.symbols.lookup<VariableOp>(name.getValue());
    return variable && llvm::is_contained({Role::Parameter, Role::Master},
                                          variable.getRole());
  }
  /// A weight that is not rounded from another one.
  bool isTrained(FlatSymbolRefAttr name) {
    return isWeight(name) && !rounded.contains(name);
  }
  FlatSymbolRefAttr getParameter(FlatSymbolRefAttr variable) {
    auto op = subject.symbols.lookup<VariableOp>(variable.getValue());
    return op ? op->getAttrOfType<FlatSymbolRefAttr>(kParameterAttr)
              : FlatSymbolRefAttr();
  }
  /// The parameter that a trained weight is, or is the master of.
  FlatSymbolRefAttr getOwner(FlatSymbolRefAttr trained) {
    auto op = subject.symbols.lookup<VariableOp>(trained.getValue());
    return op.getRole() == Role::Master ? getParameter(trained) : trained;
  }

  Subject &subject;
  ScheduleOp schedule;
  int64_t wave, distance, workers = 1;
  llvm::MapVector<StageOp, StageTasks> stages;
  /// The identity of a weight, common to the parameters of all workers that are
  /// this weight, wherever they are cut: where it starts, and the number of the
  /// parameter among those of its worker that start there.
  using Weight = std::pair<Attribute, int64_t>;
  /// The worker that pushes a wave, and the weight.
  struct Wave {
    int64_t worker = 0;
    Weight weight;
  };
  /// The wave that each channel brings.
  llvm::DenseMap<Attribute, Wave> sent;
  /// Parameters that are rounded from masters.
  llvm::DenseSet<Attribute> rounded;
  /// The weight that each parameter or master is, and the variable of its
  /// waves.
  llvm::DenseMap<Attribute, Weight> weights;
  llvm::DenseMap<Attribute, Attribute> kept;
};

} // namespace

WaveRules::WaveRules(Subject &subject, ScheduleOp schedule,
                     ArrayRef<TaskOp> tasks)
    : subject(subject), schedule(schedule),
      wave(static_cast<int64_t>(schedule.getWave())),
      distance(static_cast<int64_t>(schedule.getDistance())) {
  for (StageOp stage : subject.module.getOps<StageOp>())
    workers = std::max(workers, static_cast<int64_t>(stage.getWorker()) + 1);
  llvm::DenseMap<std::pair<int64_t, Attribute>, int64_t> counts;
  for (auto variable : subject.module.getOps<VariableOp>())
    if (variable.getRole() == Role::Parameter && variable.getStageAttr())
      if (auto stage = subject.symbols.lookup<StageOp>(*variable.getStage()))
        weights[FlatSymbolRefAttr::get(variable)] = {
            variable.getInitAttr(),
            counts[{static_cast<int64_t>(stage.getWorker()),
                    variable.getInitAttr()}]++};
  for (auto variable : subject.module.getOps<VariableOp>()) {
    auto name = FlatSymbolRefAttr::get(variable);
    if (variable.getRole() != Role::Master || !getParameter(name))
      continue;
    rounded.insert(getParameter(name));
    weights[name] = weights.lookup(getParameter(name));
  }
  for (TaskOp task : tasks) {
    auto stage = subject.symbols.lookup<StageOp>(task.getStage());
    StageTasks &own = stages[stage];
    if (task.getKind() == TaskKind::Update)
      own.update = task;
    else if (task.getKind() == TaskKind::Fold)
      own.fold = task;
    if (task.getKind() != TaskKind::Push)
      continue;
    own.push = task;
    collectWaves(task, static_cast<int64_t>(stage.getWorker()));
  }
}

void WaveRules::collectWaves(TaskOp push, int64_t worker) {
  for (auto call : push.getBody().getOps<func::CallOp>()) {
    auto now = call.getNumOperands()
                   ? call.getOperand(0).getDefiningOp<ReadOp>()
                   : ReadOp();
    if (!now)
      continue;
    for (Operation *user : call->getUsers())
      if (auto put = dyn_cast<PutOp>(user))
        sent[put.getChannelAttr()] = {worker,
                                      weights.lookup(now.getVariableAttr())};
      else if (auto write = dyn_cast<WriteOp>(user))
        kept[now.getVariableAttr()] = write.getVariableAttr();
  }
}

LogicalResult WaveRules::verify() {
  for (auto &[stage, own] : stages)
    if (failed(verifyStage(stage, own)))
      return failure();
  return verifyEntries();
}

LogicalResult WaveRules::verifyStage(StageOp stage, StageTasks own) {
  if (!own.push && !own.fold && (workers == 1 || !own.update))
    return success();
  for (auto [task, kind] : {std::pair(own.update, TaskKind::Update),
                            std::pair(own.push, TaskKind::Push),
                            std::pair(own.fold, TaskKind::Fold)})
    if (!task)
      return stage.emitOpError(
                 "C31: updates weights of one of several workers, "
                 "but has no ")
             << stringifyTaskKind(kind) << " task";
  // All that an update trains is exchanged.
  llvm::DenseSet<Attribute> folded;
  for (WriteOp write : own.fold.getBody().getOps<WriteOp>())
    folded.insert(write.getVariableAttr());
  for (WriteOp write : own.update.getBody().getOps<WriteOp>())
    if (isWeight(write.getVariableAttr()) &&
        !folded.contains(write.getVariableAttr()))
      return own.fold.emitOpError("C31: does not fold waves into ")
             << write.getVariableAttr() << ", which @"
             << own.update.getSymName() << " writes";
  return failed(verifyPush(own.push))
             ? failure()
             : verifyFold(own.fold, static_cast<int64_t>(stage.getWorker()));
}

/// A push reads a weight, and what it was at the end of the wave before.
LogicalResult WaveRules::verifyPush(TaskOp push) {
  llvm::DenseMap<Attribute, int64_t> puts;
  for (auto call : push.getBody().getOps<func::CallOp>()) {
    SmallVector<ReadOp> reads;
    for (Value operand : call.getOperands())
      if (auto read = operand.getDefiningOp<ReadOp>())
        reads.push_back(read);
    if (reads.size() != 2 || !isTrained(reads[0].getVariableAttr()))
      return call.emitOpError(
          "C31: of a push is not of a weight and what it was before");
    ReadOp now = reads[0], before = reads[1];
    if (now.getLag())
      return now.emitOpError("C31: of a push has a lag, where the wave ends");
    bool isOwn = before.getVariableAttr() == now.getVariableAttr();
    if (distance > 0 ? !isOwn || static_cast<int64_t>(
                                     before.getLag().value_or(0)) != wave
                     : isOwn || before.getLag() ||
                           getParameter(before.getVariableAttr()) !=
                               getOwner(now.getVariableAttr()))
      return before.emitOpError("C31: of a push is not of ")
             << now.getVariableAttr() << " as the wave before left it"
             << (distance > 0 ? ": expected lag(" + std::to_string(wave) + ")"
                              : std::string());
    for (Operation *user : call.getResult(0).getUsers())
      if (auto put = dyn_cast<PutOp>(user)) {
        auto channel =
            subject.symbols.lookup<ChannelOp>(put.getChannelAttr().getValue());
        if (!channel || !channel.getOwnQueue())
          return put.emitOpError("C31: of a wave goes through ")
                 << put.getChannelAttr() << ", which has no queue of its own";
        ++puts[now.getVariableAttr()];
      }
    puts.try_emplace(now.getVariableAttr(), 0);
  }
  for (auto [parameter, count] : puts)
    if (count != workers - 1)
      return push.emitOpError("C31: sends waves of ")
             << parameter << " to " << count << " of " << workers - 1
             << " other workers";
  return success();
}

LogicalResult WaveRules::verifyFold(TaskOp fold, int64_t worker) {
  for (auto call : fold.getBody().getOps<func::CallOp>())
    if (llvm::any_of(call.getResultTypes(), llvm::IsaPred<TensorType>) &&
        call.getNumResults() > 1 && failed(verifyFoldCall(fold, worker, call)))
      return failure();
  for (auto write : fold.getBody().getOps<WriteOp>())
    if (failed(verifyAverage(write)))
      return failure();
  return success();
}

/// Checks that an average is moved by the global weights that the fold makes.
LogicalResult WaveRules::verifyAverage(WriteOp write) {
  auto variable =
      subject.symbols.lookup<VariableOp>(write.getVariableAttr().getValue());
  auto kind =
      variable ? variable->getAttrOfType<StringAttr>(kKindAttr) : StringAttr();
  auto call = write.getValue().getDefiningOp<func::CallOp>();
  if (!kind || kind.getValue() != kAverageKind || !call)
    return success();
  auto isAverage = [&](Value value) {
    auto read = value.getDefiningOp<ReadOp>();
    return read && read.getVariableAttr() == write.getVariableAttr();
  };
  auto isGlobal = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto other = dyn_cast<WriteOp>(user);
      return other && other.getVariableAttr() != write.getVariableAttr() &&
             !isWeight(other.getVariableAttr()) &&
             getParameter(other.getVariableAttr()) ==
                 getParameter(write.getVariableAttr());
    });
  };
  if (call.getNumOperands() == 2 && isAverage(call.getOperand(0)) &&
      isGlobal(call.getOperand(1)))
    return success();
  return write.emitOpError("C31: of an average is not of ")
         << write.getVariableAttr()
         << " and the global weights that its fold makes";
}

/// (waves of all workers in their order, own later ones, global weights).
LogicalResult WaveRules::verifyFoldCall(TaskOp fold, int64_t worker,
                                        func::CallOp call) {
  auto isTensor = [](Value value) { return isa<TensorType>(value.getType()); };
  auto tensors =
      llvm::to_vector(llvm::make_filter_range(call.getOperands(), isTensor));
  if (static_cast<int64_t>(tensors.size()) != workers + distance + 1)
    return call.emitOpError("C31: of a fold has ")
           << tensors.size() << " tensors, expected the waves of " << workers
           << " workers, " << distance << " later ones and the global weights";
  VariableOp written;
  for (OpResult result : call.getResults())
    for (Operation *user : result.getUsers())
      if (auto write = dyn_cast<WriteOp>(user);
          write && isTrained(write.getVariableAttr()))
        written = subject.symbols.lookup<VariableOp>(write.getVariable());
  if (!written)
    return call.emitOpError("C31: of a fold makes no weight");
  auto name = FlatSymbolRefAttr::get(written);
  auto isOf = [&](Value value, std::optional<int64_t> lag) {
    auto read = value.getDefiningOp<ReadOp>();
    return read && getParameter(read.getVariableAttr()) == getOwner(name) &&
           (lag ? read.getLag() && static_cast<int64_t>(*read.getLag()) == *lag
                : !read.getLag());
  };
  auto isKept = [&](Value value, int64_t lag) {
    auto read = value.getDefiningOp<ReadOp>();
    return read && isOf(value, lag) &&
           kept.lookup(name) == read.getVariableAttr();
  };
  for (int64_t other : llvm::seq<int64_t>(0, workers)) {
    Value operand = tensors[other];
    bool isRight = isKept(operand, distance);
    if (other != worker) {
      auto take = operand.getDefiningOp<TakeOp>();
      auto wave = take ? sent.find(take.getChannelAttr()) : sent.end();
      isRight = wave != sent.end() && wave->second.worker == other &&
                wave->second.weight == weights.lookup(name);
    }
    if (!isRight)
      return call.emitOpError(
                 "C31: of a fold does not take the wave of worker ")
             << other << " of " << name << " as its operand " << other;
  }
  for (int64_t later : llvm::seq<int64_t>(0, distance))
    if (!isKept(tensors[workers + later], distance - 1 - later))
      return call.emitOpError("C31: of a fold does not take the own wave ")
             << later + 1 << " behind it as its operand " << workers + later
             << ": expected lag(" << distance - 1 - later << ")";
  if (!isOf(tensors.back(), std::nullopt) ||
      kept.lookup(name) ==
          tensors.back().getDefiningOp<ReadOp>().getVariableAttr())
    return call.emitOpError(
               "C31: of a fold does not read the global weights of ")
           << name << " last";
  return success();
}

/// Both stand where waves end, a fold so many waves later.
LogicalResult WaveRules::verifyEntries() {
  WalkResult result = schedule.walk([&](RunOp run) -> WalkResult {
    auto task = subject.symbols.lookup<TaskOp>(run.getTask());
    if (!task || !task.countsWaves())
      return WalkResult::advance();
    int64_t due = task.getKind() == TaskKind::Fold ? -distance * wave : 0;
    if (run.getAheadOr0() == due)
      return WalkResult::advance();
    return run.emitOpError("C31: of ")
           << run.getTaskAttr() << " has ahead(" << run.getAheadOr0()
           << "), expected ahead(" << due << "): " << distance
           << (distance == 1 ? " wave of " : " waves of ") << wave
           << " updates behind";
  });
  return failure(result.wasInterrupted());
}

LogicalResult penstock::verifyWaves(Subject &subject, ScheduleOp schedule,
                                    ArrayRef<TaskOp> tasks) {
  return WaveRules(subject, schedule, tasks).verify();
}
