//===- CommandLine.cpp - Command lines of the tools -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See CommandLine.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/CommandLine.h"
#include "FlagTexts.h"
#include "penstock/nearest.h"
#include "penstock/one_line.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"

#include <cstdlib>

using namespace llvm;

void penstock::reportError(StringRef tool, const Twine &message,
                           raw_ostream &errors) {
  beginMessage(errors, tool, Severity::Error)
      << penstock::toOneLine(message.str()) << "\n";
}

void penstock::respectNoColor() {
  if (!wantsColors(STDERR_FILENO))
    WithColor::setAutoDetectFunction([](const raw_ostream &) { return false; });
}

raw_ostream &penstock::beginMessage(raw_ostream &stream, const Twine &place,
                                    Severity severity) {
  bool isColored = stream.has_colors() && wantsColors(STDERR_FILENO);
  return stream << place << ": " << getSeverityText(severity, isColored);
}

/// LLVM suggests a flag however far it is, on a line of its own.
static std::string describeUnknownFlag(StringRef line) {
  constexpr StringLiteral kBegin("Unknown command line argument '");
  if (!line.consume_front(kBegin))
    return "";
  StringRef flag = line.split("'.  Try").first;
  StringRef name = flag.ltrim('-').split('=').first;
  std::vector<std::string> names;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden)
      names.push_back(entry.first.str());
  llvm::sort(names);
  std::string nearest = penstock::findNearest(name, names);
  return ("unknown flag --" + name +
          (nearest.empty() ? "" : "; did you mean --" + nearest + "?") +
          " (see --help)")
      .str();
}

bool penstock::parseFlags(const ToolText &tool, int argc,
                          const char *const *argv, raw_ostream &errors) {
  // A file takes the lowest number that is free: that of a standard stream, if
  // it is closed, and would get what is printed there.
  if (std::error_code error = sys::Process::FixupStandardFileDescriptors()) {
    reportError(tool.name, "standard streams: " + error.message(), errors);
    return false;
  }
  // What describes the flags is made of all of them and says nothing else.
  for (StringRef argument : ArrayRef(argv, argc).drop_front(argc > 0)) {
    StringRef flag = argument.ltrim('-');
    if (flag.size() == argument.size())
      continue;
    std::string text;
    if (flag == "help" || flag == "h")
      text = describeFlags(tool);
    else if (flag == "man")
      text = makeManPage(tool);
    else if (flag.consume_front("completion="))
      text = makeCompletion(tool, flag);
    else
      continue;
    if (text.empty()) {
      reportError(tool.name,
                  "--completion=" + flag + ": the shells are bash, zsh, fish",
                  errors);
      return false;
    }
    outs() << text;
    if (!flushOutput(tool.name, errors))
      return false;
    std::exit(0);
  }
  // LLVM says more than one line, and starts with the program's path or name.
  std::string text;
  raw_string_ostream stream(text);
  if (cl::ParseCommandLineOptions(argc, argv, tool.overview, &stream))
    return true;
  StringRef line = StringRef(text).ltrim().split('\n').first;
  if (!line.consume_front(argv[0]))
    line.consume_front(sys::path::filename(argv[0]));
  line.consume_front(": ");
  if (std::string unknown = describeUnknownFlag(line); !unknown.empty()) {
    reportError(tool.name, unknown, errors);
    return false;
  }
  // What is wrong with a value was said already, in one line.
  if (!line.rtrim().empty())
    reportError(tool.name, line.rtrim(), errors);
  return false;
}

bool penstock::checkNotEmpty(StringRef tool,
                             ArrayRef<const cl::opt<std::string> *> flags,
                             raw_ostream &errors) {
  for (const cl::opt<std::string> *flag : flags) {
    if (!flag->getNumOccurrences() || !flag->empty())
      continue;
    reportError(tool,
                "--" + flag->ArgStr +
                    "=: a value is needed; leave the flag out for the default",
                errors);
    return false;
  }
  return true;
}

bool penstock::flushOutput(StringRef tool, raw_ostream &errors) {
  outs().flush();
  if (!outs().has_error())
    return true;
  reportError(tool,
              "cannot write to standard output: " + outs().error().message(),
              errors);
  outs().clear_error();
  return false;
}
