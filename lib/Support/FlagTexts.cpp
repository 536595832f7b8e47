//===- FlagTexts.cpp - Texts that are made of flags -----------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See FlagTexts.h.
//===----------------------------------------------------------------------===//

#include "FlagTexts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"

using namespace llvm;
using namespace penstock;

namespace {

struct FlagText {
  StringRef name, help;
  /// What its value is called; empty if it has none.
  std::string value;
  bool isFile = false;
};

struct Group {
  StringRef name;
  std::vector<FlagText> flags;
};

} // namespace

static FlagText describe(StringRef name, const cl::Option &option) {
  FlagText flag;
  flag.name = name;
  flag.help = option.HelpStr;
  if (option.getValueExpectedFlag() == cl::ValueRequired)
    flag.value = option.ValueStr.empty() ? "string" : option.ValueStr.str();
  flag.isFile = option.ValueStr == "file";
  return flag;
}

/// Flags in their groups, by name; first the groups of the tool, in its order.
static std::vector<Group> collect(const ToolText &tool) {
  std::vector<Group> groups;
  auto findGroup = [&](StringRef name) -> Group & {
    for (Group &group : groups)
      if (group.name == name)
        return group;
    groups.push_back({name, {}});
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
                 [](const Group &group) { return group.flags.empty(); });
  groups.push_back(
      {"Help",
       {{"completion", "Print a completion script: bash, zsh or fish", "shell"},
        {"help", "Print this and end", ""},
        {"man", "Print the manual page", ""},
        {"version", "Print the version and end", ""}}});
  return groups;
}

static std::string getLeft(const FlagText &flag) {
  std::string dashes = flag.name.size() == 1 ? "-" : "--";
  std::string left = dashes + flag.name.str();
  if (flag.value.empty())
    return left;
  return left + (flag.name.size() == 1 ? " <" : "=<") + flag.value + ">";
}

/// Breaks a text between words.
static void wrap(raw_ostream &stream, StringRef text, size_t indent,
                 size_t width) {
  size_t column = indent;
  bool isFirst = true;
  for (StringRef rest = text; !rest.empty();) {
    auto [word, behind] = rest.split(' ');
    rest = behind;
    if (!isFirst && column + 1 + word.size() > width) {
      stream << "\n" << std::string(indent, ' ');
      column = indent;
    } else if (!isFirst) {
      stream << " ";
      ++column;
    }
    stream << word;
    column += word.size();
    isFirst = false;
  }
  stream << "\n";
}

std::string penstock::describeFlags(const ToolText &tool) {
  // On a terminal in lines that fit; else a line per flag, for what reads it.
  constexpr size_t kWidest = 100, kNarrowest = 60, kIndent = 32;
  size_t width = ~size_t(0);
  if (sys::Process::StandardOutIsDisplayed()) {
    size_t columns = sys::Process::StandardOutColumns();
    width = std::min(kWidest, columns ? columns : kWidest);
    width = std::max(width, kNarrowest);
  }
  std::string text;
  raw_string_ostream stream(text);
  stream << "OVERVIEW: " << tool.name << " " << tool.overview.rtrim() << "\n\n"
         << "USAGE: " << tool.name << " " << tool.usage << "\n";
  for (const Group &group : collect(tool)) {
    stream << "\n" << group.name << ":\n";
    for (const FlagText &flag : group.flags) {
      std::string left = "  " + getLeft(flag);
      bool isLong = left.size() + 3 > kIndent;
      stream << left;
      if (isLong && width != ~size_t(0))
        stream << "\n" << std::string(kIndent - 2, ' ');
      else
        stream << std::string(isLong ? 1 : kIndent - 2 - left.size(), ' ');
      stream << "- ";
      wrap(stream, flag.help, kIndent, width);
    }
  }
  return text;
}

/// A text in which troff sees no request, escape or hyphenation.
static std::string escapeRoff(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  if (StringRef(result).starts_with(".") || StringRef(result).starts_with("'"))
    result.insert(0, "\\&");
  return result;
}

std::string penstock::makeManPage(const ToolText &tool) {
  std::string text;
  raw_string_ostream stream(text);
  stream << ".TH " << tool.name.upper() << " 1 \"\" \"Penstock "
         << PENSTOCK_VERSION << "\" \"Penstock\"\n"
         << ".SH NAME\n"
         << escapeRoff(tool.name) << " \\- "
         << escapeRoff(tool.overview.rtrim()) << "\n.SH SYNOPSIS\n.B "
         << escapeRoff(tool.name) << "\n"
         << escapeRoff(tool.usage) << "\n.SH OPTIONS\n";
  for (const Group &group : collect(tool)) {
    stream << ".SS " << escapeRoff(group.name) << "\n";
    for (const FlagText &flag : group.flags)
      stream << ".TP\n.B " << escapeRoff(getLeft(flag)) << "\n"
             << escapeRoff(flag.help) << "\n";
  }
  stream << ".SH EXIT STATUS\n0: done. 1: a mistake in the command, the model "
            "or the data. 2: a defect of\nPenstock. 3: does not fit into the "
            "memory of a device.\n"
         << ".SH SEE ALSO\nThe pages in share/doc/penstock.\n";
  return text;
}

static std::string makeBash(const ToolText &tool) {
  std::string words;
  for (const Group &group : collect(tool))
    for (const FlagText &flag : group.flags)
      words += (flag.name.size() == 1 ? " -" : " --") + flag.name.str() +
               (flag.value.empty() || flag.name.size() == 1 ? "" : "=");
  std::string function = "_" + tool.name.str();
  std::replace(function.begin(), function.end(), '-', '_');
  return "# bash completion for " + tool.name.str() + "\n" + function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]}\n"
         "  [[ $word == = ]] && word=\n"
         "  if [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         StringRef(words).ltrim().str() +
         "\" -- \"$word\"))\n"
         "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
         "  else\n"
         "    compopt -o filenames\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "} && complete -F " +
         function + " " + tool.name.str() + "\n";
}

static std::string escapeZsh(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (StringRef("[]:\\").contains(c))
      (result += '\\') += c;
    else
      result += c;
  }
  return result;
}

static std::string makeZsh(const ToolText &tool) {
  std::string text = "#compdef " + tool.name.str() + "\n_arguments -S \\\n";
  for (const Group &group : collect(tool))
    for (const FlagText &flag : group.flags) {
      bool isShort = flag.name.size() == 1;
      text += std::string("  '*") + (isShort ? "-" : "--") + flag.name.str() +
              (flag.value.empty() ? ""
               : isShort          ? "+"
                                  : "=") +
              "[" + escapeZsh(flag.help) + "]";
      if (!flag.value.empty())
        text += ":" + escapeZsh(flag.value) + ":" +
                (flag.isFile || isShort ? "_files" : "");
      text += "' \\\n";
    }
  return text + "  '*:file:_files'\n";
}

static std::string escapeFish(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '\'' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

static std::string makeFish(const ToolText &tool) {
  std::string text;
  for (const Group &group : collect(tool))
    for (const FlagText &flag : group.flags)
      text += "complete -c " + tool.name.str() +
              (flag.name.size() == 1 ? " -s " : " -l ") + flag.name.str() +
              (flag.value.empty()                     ? ""
               : flag.isFile || flag.name.size() == 1 ? " -r"
                                                      : " -x") +
              " -d '" + escapeFish(flag.help) + "'\n";
  return text;
}

std::string penstock::makeCompletion(const ToolText &tool, StringRef shell) {
  if (shell == "bash")
    return makeBash(tool);
  if (shell == "zsh")
    return makeZsh(tool);
  if (shell == "fish")
    return makeFish(tool);
  return "";
}
