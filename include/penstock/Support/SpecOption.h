//===- SpecOption.h - Options of passes that are records --------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An option of a pass whose value is NAME:key=value is parsed on the command
// line, so that the pass itself sees the record.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_SUPPORT_SPECOPTION_H
#define PENSTOCK_SUPPORT_SPECOPTION_H

#include "penstock/Support/Spec.h"

#include "llvm/Support/CommandLine.h"

/// Makes a record a type of options. A function parseSpecAs(const TYPE *, text,
/// error) has to stand beside it. NOUN is what --help calls the value.
#define PENSTOCK_SPEC_OPTION(TYPE, NOUN)                                       \
  template <> class llvm::cl::parser<TYPE> : public basic_parser<TYPE> {       \
  public:                                                                      \
    using basic_parser<TYPE>::basic_parser;                                    \
    bool parse(Option &option, StringRef, StringRef text, TYPE &value) {       \
      std::string error;                                                       \
      auto parsed =                                                            \
          parseSpecAs(static_cast<const TYPE *>(nullptr), text, error);        \
      if (!error.empty())                                                      \
        return option.error(error);                                            \
      value = std::move(*parsed);                                              \
      return false;                                                            \
    }                                                                          \
    StringRef getValueName() const override { return NOUN; }                   \
    void printOptionDiff(const Option &option, const TYPE &, const OptVal &,   \
                         size_t width) const {                                 \
      printOptionNoValue(option, width);                                       \
    }                                                                          \
  };

#endif // PENSTOCK_SUPPORT_SPECOPTION_H
