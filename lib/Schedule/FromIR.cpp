//===- FromIR.cpp - Schedules of the IR as plain numbers ------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a task takes, puts, reads and writes are lists of ids; who frees a
// message follows from where its values are put again.
//===----------------------------------------------------------------------===//

#include "penstock/Schedule/FromIR.h"

#include "dialects/Pipeline/Replicas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace penstock::schedule {

namespace {

class ModelBuilder {
public:
  ModelBuilder(ModuleOp module, TaskSet tasks, Sizes sizes)
      : module(module), taskSet(tasks), sizes(sizes) {}

  FailureOr<Imported> build(int64_t microbatches) {
    result.model.microbatches = microbatches;
    if (failed(addStages()) || failed(addVariables()) || failed(addTasks()) ||
        failed(addChannels()) || failed(addGroups()))
      return failure();
    addStorage();
    return std::move(result);
  }

private:
  LogicalResult addStages();
  LogicalResult addVariables();
  LogicalResult addTasks();
  LogicalResult addTask(pipeline::TaskOp op, Task &task);
  LogicalResult addChannels();
  LogicalResult placeChannel(pipeline::ChannelOp op, Channel &channel);
  LogicalResult addGroups();
  void addStorage();
  void addHomes(pipeline::TaskOp op);
  void addUsers(int channel, Users &users);

  int channelId(StringRef name) {
    auto [place, isNew] =
        result.channelIds.try_emplace(name, result.model.channels.size());
    if (isNew) {
      result.model.channels.emplace_back();
      result.model.channels.back().name = name.str();
    }
    return place->second;
  }

  ModuleOp module;
  TaskSet taskSet;
  Sizes sizes;
  Imported result;
  /// Local channels and sends whose values live in a channel's slots.
  std::vector<llvm::SmallSetVector<int, 2>> aliases, sendsOf;
};

} // namespace

LogicalResult ModelBuilder::addStages() {
  Model &model = result.model;
  bool onFirst = taskSet == TaskSet::Evaluation && pipeline::trains(module);
  for (auto op : module.getOps<pipeline::StageOp>()) {
    ArrayRef<int64_t> devices = op.getDevices().value_or(ArrayRef<int64_t>());
    if (devices.empty())
      return op.emitOpError("has no device; run pipeline-place first");
    for (int64_t device : devices)
      model.devices = std::max<int>(model.devices, device + 1);
    Stage stage;
    stage.name = op.getSymName().str();
    stage.worker = static_cast<int>(op.getWorker());
    for (int64_t device : pipeline::getPlaces(op, onFirst))
      stage.devices.push_back(device);
    if (model.microbatches % int64_t(stage.devices.size()) != 0)
      return op.emitOpError("has ")
             << stage.devices.size() << " replicas, which do not divide "
             << model.microbatches << " microbatches";
    result.stageIds[stage.name] = model.stages.size();
    result.stages.push_back(op);
    model.stages.push_back(std::move(stage));
  }
  return success();
}

LogicalResult ModelBuilder::addVariables() {
  for (auto op : module.getOps<pipeline::VariableOp>()) {
    Variable variable;
    variable.name = op.getSymName().str();
    result.variableIds[variable.name] = result.model.variables.size();
    result.variables.push_back(op);
    result.model.variables.push_back(std::move(variable));
  }
  for (Operation &op : module.getOps()) {
    auto storage = dyn_cast<pipeline::VersionStorageOpInterface>(op);
    if (!storage)
      continue;
    auto found = result.variableIds.find(storage.getVariableAttr().getValue());
    if (found == result.variableIds.end())
      return op.emitOpError("names no variable");
    result.model.variables[found->second].versions = storage.getVersions();
  }
  if (sizes == Sizes::Ignore)
    for (Variable &variable : result.model.variables)
      variable.versions = 0;
  return success();
}

LogicalResult ModelBuilder::addTask(pipeline::TaskOp op, Task &task) {
  task.name = op.getSymName().str();
  task.letter = op.getLetter();
  auto stage = result.stageIds.find(op.getStage());
  if (stage == result.stageIds.end())
    return op.emitOpError("names no stage");
  task.stage = stage->second;
  if (op.isBodyless())
    return op.emitOpError("is a declaration, so nothing can be scheduled");
  for (Operation &inner : op.getBody().front()) {
    auto findVariable = [&](FlatSymbolRefAttr symbol) -> FailureOr<int> {
      auto found = result.variableIds.find(symbol.getValue());
      if (found == result.variableIds.end())
        return inner.emitOpError("names no variable");
      return found->second;
    };
    if (auto take = dyn_cast<pipeline::TakeOp>(inner)) {
      task.takes.push_back(channelId(take.getChannel()));
    } else if (auto put = dyn_cast<pipeline::PutOp>(inner)) {
      task.puts.push_back(channelId(put.getChannel()));
    } else if (auto read = dyn_cast<pipeline::ReadOp>(inner)) {
      FailureOr<int> variable = findVariable(read.getVariableAttr());
      if (failed(variable))
        return failure();
      Read entry;
      entry.variable = *variable;
      if (std::optional<uint64_t> lag = read.getLag())
        entry.lag = *lag;
      task.reads.push_back(entry);
    } else if (auto write = dyn_cast<pipeline::WriteOp>(inner)) {
      FailureOr<int> variable = findVariable(write.getVariableAttr());
      if (failed(variable))
        return failure();
      task.writes.push_back(*variable);
    }
  }
  return success();
}

LogicalResult ModelBuilder::addTasks() {
  Model &model = result.model;
  for (auto op : module.getOps<pipeline::TaskOp>()) {
    bool evaluates = op.getKind() == pipeline::TaskKind::Evaluate;
    if (evaluates != (taskSet == TaskSet::Evaluation))
      continue;
    int id = model.tasks.size();
    Task task;
    if (failed(addTask(op, task)))
      return failure();
    for (int channel : task.takes)
      model.channels[channel].consumer = id;
    for (int channel : task.puts)
      model.channels[channel].producer = id;
    if (task.letter == 'U')
      for (int variable : task.writes)
        model.variables[variable].updater = id;
    result.taskIds[task.name] = id;
    result.tasks.push_back(op);
    model.tasks.push_back(std::move(task));
  }
  for (auto [id, task] : llvm::enumerate(model.tasks))
    for (int variable : task.perWave() ? task.writes : SmallVector<int, 4>())
      if (model.variables[variable].updater < 0)
        model.variables[variable].updater = static_cast<int>(id);
      else
        model.variables[variable].folder = static_cast<int>(id);
  return success();
}

LogicalResult ModelBuilder::placeChannel(pipeline::ChannelOp op,
                                         Channel &channel) {
  const char *schedule =
      taskSet == TaskSet::Training ? "training" : "evaluation";
  if (channel.producer < 0 && !op.getSource())
    return op.emitOpError("has no source, and no task of ")
           << schedule << " puts into it";
  if (channel.consumer < 0 && !op.getSink())
    return op.emitOpError("has no sink, and no task of ")
           << schedule << " takes from it";
  if (sizes == Sizes::Keep) {
    channel.slots = op.getSlots().value_or(0);
    channel.staging = op.getStaging().value_or(0);
  }
  if (channel.isSource() || channel.isSink())
    return success();
  ArrayRef<int> from =
      result.model.stages[result.model.tasks[channel.producer].stage].devices;
  ArrayRef<int> to =
      result.model.stages[result.model.tasks[channel.consumer].stage].devices;
  channel.local = from == to;
  channel.ownQueue = op.getOwnQueue();
  if (channel.local)
    return success();
  if (result.model.tasks[channel.producer].perUpdate() &&
      from.size() + to.size() > 2)
    return op.emitOpError("counts updates, and joins replicated stages on "
                          "different devices, which is not supported");
  for (size_t k = 0; k < from.size() * to.size(); ++k)
    if (from[k % from.size()] == to[k % to.size()])
      return op.emitOpError("joins stages of which some replicas, but not all, "
                            "share a device");
  return success();
}

LogicalResult ModelBuilder::addChannels() {
  llvm::StringMap<pipeline::ChannelOp> ops;
  for (auto op : module.getOps<pipeline::ChannelOp>())
    ops[op.getSymName()] = op;
  for (Channel &channel : result.model.channels) {
    pipeline::ChannelOp op = ops.lookup(channel.name);
    if (!op)
      return module.emitError("tasks use @")
             << channel.name << ", which is no channel";
    result.channels.push_back(op);
    if (failed(placeChannel(op, channel)))
      return failure();
  }
  return success();
}

LogicalResult ModelBuilder::addGroups() {
  if (taskSet == TaskSet::Evaluation)
    return success();
  Model &model = result.model;
  for (auto op : module.getOps<pipeline::GroupOp>()) {
    Group group;
    group.name = op.getSymName().str();
    llvm::SmallSetVector<int, 4> devices;
    for (Attribute list : op.getMembers())
      for (Attribute member : cast<ArrayAttr>(list)) {
        auto symbol = dyn_cast<FlatSymbolRefAttr>(member);
        auto found = symbol ? result.variableIds.find(symbol.getValue())
                            : result.variableIds.end();
        if (found == result.variableIds.end())
          return op.emitOpError("has a member that is no variable");
        group.members.push_back(found->second);
        auto stage = result.variables[found->second].getStage();
        auto place = result.stageIds.find(stage.value_or(""));
        if (place != result.stageIds.end())
          for (int device : model.stages[place->second].devices)
            devices.insert(device);
      }
    group.devices.assign(devices.begin(), devices.end());
    llvm::sort(group.devices);
    result.groupIds[group.name] = model.groups.size();
    result.groups.push_back(op);
    model.groups.push_back(std::move(group));
  }
  return success();
}

/// Decides where each value lives: where it was taken from, or in a residual,
/// or, if it is only sent, in the staging of the first channel it goes to.
void ModelBuilder::addHomes(pipeline::TaskOp op) {
  Model &model = result.model;
  for (auto take : op.getBody().front().getOps<pipeline::TakeOp>()) {
    int id = result.channelIds.lookup(take.getChannel());
    for (auto [field, value] : llvm::enumerate(take.getValues()))
      result.homes[value] = {id, unsigned(field), false};
  }
  for (bool local : {true, false})
    for (auto put : op.getBody().front().getOps<pipeline::PutOp>()) {
      int id = result.channelIds.lookup(put.getChannel());
      if (model.channels[id].local != local)
        continue;
      for (auto [field, value] : llvm::enumerate(put.getValues())) {
        auto [place, isNew] =
            result.homes.try_emplace(value, Home{id, unsigned(field), !local});
        Home home = place->second;
        if (isNew) {
          if (!local)
            model.channels[id].stagingUsers.sends.push_back(id);
        } else if (home.staging) {
          model.channels[home.channel].stagingUsers.sends.push_back(id);
        } else if (local) {
          if (home.channel != id)
            aliases[home.channel].insert(id);
        } else {
          sendsOf[home.channel].insert(id);
        }
      }
    }
}

void ModelBuilder::addUsers(int channel, Users &users) {
  int consumer = result.model.channels[channel].consumer;
  if (consumer >= 0 && !llvm::is_contained(users.tasks, consumer))
    users.tasks.push_back(consumer);
  for (int send : sendsOf[channel])
    if (!llvm::is_contained(users.sends, send))
      users.sends.push_back(send);
  // A chain of aliases follows the tasks of a microbatch, so it ends.
  for (int alias : aliases[channel])
    addUsers(alias, users);
}

void ModelBuilder::addStorage() {
  aliases.resize(result.model.channels.size());
  sendsOf.resize(result.model.channels.size());
  for (pipeline::TaskOp op : result.tasks)
    addHomes(op);
  for (auto [id, channel] : llvm::enumerate(result.model.channels))
    if (!channel.isSink())
      addUsers(id, channel.slotUsers);
}

FailureOr<Imported> importModel(ModuleOp module, TaskSet tasks,
                                int64_t microbatches, Sizes sizes) {
  return ModelBuilder(module, tasks, sizes).build(microbatches);
}

} // namespace penstock::schedule
