//===- CommandLine.cpp - Command lines of the tools -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See CommandLine.h.
//===----------------------------------------------------------------------===//

#include "penstock/Support/CommandLine.h"
#include "penstock/flag_texts.h"
#include "penstock/nearest.h"
#include "penstock/one_line.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"

#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;
using namespace penstock;

namespace {

/// Keeps what is written to standard error in its lifetime: there LLVM's parser
/// says by itself, and in words of its own, what is wrong with a value.
class ErrorCapture {
public:
  ErrorCapture()
      : file(memfd_create("errors", MFD_CLOEXEC)), stream(dup(STDERR_FILENO)) {
    if (file >= 0 && stream >= 0)
      dup2(file, STDERR_FILENO);
  }
  ~ErrorCapture() {
    if (stream >= 0) {
      dup2(stream, STDERR_FILENO);
      close(stream);
    }
    if (file >= 0)
      close(file);
  }

  std::string getText() const {
    std::string text;
    char buffer[1024];
    for (off_t at = 0; file >= 0;) {
      ssize_t size = pread(file, buffer, sizeof(buffer), at);
      if (size <= 0)
        break;
      text.append(buffer, static_cast<size_t>(size));
      at += size;
    }
    return text;
  }

private:
  int file, stream;
};

} // namespace

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

static FlagText describe(StringRef name, const cl::Option &option) {
  FlagText flag;
  flag.name = name;
  flag.help = option.HelpStr;
  if (option.getValueExpectedFlag() == cl::ValueRequired)
    flag.value = option.ValueStr.empty() ? "string" : option.ValueStr.str();
  flag.isFile = option.ValueStr == "file";
  return flag;
}

/// Returns the flags in their groups, by name; first the groups of the tool, in
/// its order. Help, manual pages and completions are made of them, so that none
/// of these can lack one.
static FlagPage collectFlags(const ToolText &tool) {
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

/// Returns the columns at which --help is wrapped: those of a terminal, within
/// reason; else none, for a program that reads it.
static size_t getHelpWidth() {
  constexpr size_t kWidest = 100, kNarrowest = 60;
  if (!sys::Process::StandardOutIsDisplayed())
    return std::string::npos;
  size_t columns = sys::Process::StandardOutColumns();
  return std::clamp(columns ? columns : kWidest, kNarrowest, kWidest);
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

/// Returns `line` as our messages say it: "penstockc: for the --x option: 'y'
/// value invalid for long argument!".
static std::string describeValue(StringRef line) {
  auto [place, message] = line.split(" option: ");
  StringRef flag = place.rsplit("for the ").second;
  if (message.empty() || !flag.starts_with("-"))
    return line.str();
  message.consume_back("!");
  std::string value;
  if (message.consume_front("'"))
    value = ("=" + message.split('\'').first).str();
  auto needs = [&](StringRef what) {
    return (flag + value + ": " + what).str();
  };
  if (message.ends_with("value invalid for floating point argument"))
    return needs("a number is needed");
  if (message.contains("value invalid for"))
    return needs("a whole number is needed");
  if (message.contains("is invalid value for boolean"))
    return needs("it is given without a value");
  if (message == "requires a value")
    return needs("a value is needed");
  return (flag + ": " + (value.empty() ? "" : "'") + message).str();
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
      text = describeFlags(collectFlags(tool), getHelpWidth());
    else if (flag == "man")
      text = makeManPage(collectFlags(tool));
    else if (flag.consume_front("completion="))
      text = makeCompletion(collectFlags(tool), flag);
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
  std::string ofValues;
  bool isParsed = [&] {
    ErrorCapture capture;
    bool result =
        cl::ParseCommandLineOptions(argc, argv, tool.overview, &stream);
    ofValues = capture.getText();
    return result;
  }();
  if (isParsed) {
    errors << ofValues;
    return true;
  }
  StringRef line = StringRef(text).ltrim().split('\n').first;
  if (!line.consume_front(argv[0]))
    line.consume_front(sys::path::filename(argv[0]));
  line.consume_front(": ");
  if (std::string unknown = describeUnknownFlag(line); !unknown.empty()) {
    reportError(tool.name, unknown, errors);
    return false;
  }
  if (line.rtrim().empty())
    line = StringRef(ofValues).split('\n').first;
  reportError(tool.name, describeValue(line.rtrim()), errors);
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
