//===- ListOperators.cpp - The operator table as Markdown -----------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See ListOperators.h. One line per operator; the table has one entry per
// since-version, in order.
//===----------------------------------------------------------------------===//

#include "ListOperators.h"

#include "penstock/Import/OperatorRegistry.h"

#include "llvm/ADT/STLExtras.h"

using namespace penstock;
using namespace penstock::onnx;

using Entries = llvm::ArrayRef<Operator>;

/// The since-versions for which `holds`, or "" when there are none.
static std::string versions(Entries entries,
                            llvm::function_ref<bool(const Operator &)> holds) {
  std::string text;
  for (const Operator &entry : entries)
    if (holds(entry))
      text += (text.empty() ? "" : ", ") + std::to_string(entry.since);
  return text;
}

/// "yes", "no", or the since-versions that have the property.
static std::string answer(Entries entries,
                          llvm::function_ref<bool(const Operator &)> holds) {
  if (llvm::all_of(entries, holds))
    return "yes";
  std::string some = versions(entries, holds);
  return some.empty() ? "no" : "since " + some;
}

static void listOne(Entries entries, llvm::raw_ostream &stream) {
  stream << "| " << entries.front().type << " | "
         << versions(entries, [](const Operator &) { return true; }) << " | "
         << answer(entries, [](const Operator &entry) { return !!entry.lower; })
         << " | "
         << answer(entries, [](const Operator &entry) { return !!entry.fold; })
         << " | "
         << answer(entries,
                   [](const Operator &entry) {
                     return entry.lower &&
                            entry.derivative == Operator::Differentiable;
                   })
         << " |\n";
}

void penstock::listOperators(llvm::raw_ostream &stream) {
  Entries table = getOperators();
  std::optional<llvm::StringRef> domain;
  while (!table.empty()) {
    const Operator &first = table.front();
    if (domain != first.domain) {
      domain = first.domain;
      stream << "\n## Domain `"
             << (domain->empty() ? llvm::StringRef("ai.onnx") : *domain)
             << "`\n\n| operator | since-versions | runs | folds | gradient "
                "|\n|---|---|---|---|---|\n";
    }
    size_t count = llvm::count_if(table, [&](const Operator &entry) {
      return entry.domain == first.domain && entry.type == first.type;
    });
    listOne(table.take_front(count), stream);
    table = table.drop_front(count);
  }
}
