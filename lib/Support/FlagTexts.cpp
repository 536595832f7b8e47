//===- FlagTexts.cpp - The flags of LLVM's parser as texts ----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See FlagTexts.h.
//===----------------------------------------------------------------------===//

#include "FlagTexts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Process.h"

using namespace llvm;
using namespace penstock;

static FlagText describe(StringRef name, const cl::Option &option) {
  FlagText flag;
  flag.name = name;
  flag.help = option.HelpStr;
  if (option.getValueExpectedFlag() == cl::ValueRequired)
    flag.value = option.ValueStr.empty() ? "string" : option.ValueStr.str();
  flag.isFile = option.ValueStr == "file";
  return flag;
}

FlagPage penstock::collectFlags(const ToolText &tool) {
  FlagPage page = {tool.name.str(),
                   PENSTOCK_VERSION,
                   tool.overview.rtrim().str(),
                   tool.usage.str(),
                   "0: done. 1: a mistake in the command, the model or the "
                   "data. 2: a defect of\n"
                   "Penstock. 3: does not fit into the memory of a device.",
                   {}};
  std::vector<FlagGroup> &groups = page.groups;
  auto findGroup = [&](StringRef name) -> FlagGroup & {
    for (FlagGroup &group : groups)
      if (group.name == name)
        return group;
    groups.push_back({name.str(), {}});
    return groups.back();
  };
  for (const cl::OptionCategory *group : tool.groups)
    findGroup(group->getName());
  std::vector<std::pair<StringRef, const cl::Option *>> options;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden &&
        entry.second->Categories.front() != &cl::getGeneralCategory())
      options.emplace_back(entry.first, entry.second);
  llvm::sort(options, llvm::less_first());
  for (auto [name, option] : options) {
    const cl::OptionCategory *category = option->Categories.front();
    // LLVM's own are said at the end.
    if (category->getName() != "Generic Options")
      findGroup(category->getName()).flags.push_back(describe(name, *option));
  }
  llvm::erase_if(groups,
                 [](const FlagGroup &group) { return group.flags.empty(); });
  groups.push_back(getHelpFlags());
  return page;
}

size_t penstock::getHelpWidth() {
  constexpr size_t kWidest = 100, kNarrowest = 60;
  if (!sys::Process::StandardOutIsDisplayed())
    return std::string::npos;
  size_t columns = sys::Process::StandardOutColumns();
  return std::clamp(columns ? columns : kWidest, kNarrowest, kWidest);
}
