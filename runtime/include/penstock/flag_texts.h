//===- flag_texts.h - Texts that are made of flags --------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Help, manual pages and completions of a tool, from a table of its flags. The
// tools of the compiler make theirs of LLVM's parser, those of the runtime have
// one.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_FLAG_TEXTS_H
#define PENSTOCK_FLAG_TEXTS_H

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

struct FlagText {
  /// Without dashes.
  std::string name, help;
  /// The name of its value; empty if it has none.
  std::string value;
  bool isFile = false;
};

struct FlagGroup {
  std::string name;
  std::vector<FlagText> flags;
};

/// The text of a tool's pages.
struct FlagPage {
  std::string tool, version;
  /// A sentence that begins behind the name.
  std::string overview;
  /// The arguments behind the name on a command line.
  std::string usage;
  /// The codes with which it ends, as sentences.
  std::string exitCodes;
  std::vector<FlagGroup> groups;
};

/// Returns the flags that every tool has.
inline FlagGroup getHelpFlags() {
  return {
      "Help",
      {{"completion", "Print a completion script: bash, zsh or fish", "shell"},
       {"help", "Print this and end", ""},
       {"man", "Print the manual page", ""},
       {"version", "Print the version and end", ""}}};
}

namespace flag_texts {

inline std::string getLeft(const FlagText &flag) {
  bool isShort = flag.name.size() == 1;
  std::string left = (isShort ? "-" : "--") + flag.name;
  if (flag.value.empty())
    return left;
  return left + (isShort ? " <" : "=<") + flag.value + ">";
}

/// Breaks a text between words.
inline std::string wrap(std::string_view text, size_t indent, size_t width) {
  std::string result;
  size_t column = indent;
  bool isFirst = true;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!isFirst && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!isFirst) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    isFirst = false;
  }
  return result + "\n";
}

/// Returns a text in which troff sees no request, escape or hyphenation.
inline std::string escapeRoff(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  if (result.starts_with('.') || result.starts_with('\''))
    result.insert(0, "\\&");
  return result;
}

inline std::string escapeZsh(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      (result += '\\') += c;
    else
      result += c;
  }
  return result;
}

inline std::string escapeFish(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\'' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

inline std::string makeBash(const FlagPage &page) {
  std::string words;
  for (const FlagGroup &group : page.groups)
    for (const FlagText &flag : group.flags)
      words += (words.empty() ? "" : " ") +
               std::string(flag.name.size() == 1 ? "-" : "--") + flag.name +
               (flag.value.empty() || flag.name.size() == 1 ? "" : "=");
  std::string function = "_" + page.tool;
  std::replace(function.begin(), function.end(), '-', '_');
  return "# bash completion for " + page.tool + "\n" + function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]}\n"
         "  [[ $word == = ]] && word=\n"
         "  if [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         words +
         "\" -- \"$word\"))\n"
         "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
         "  else\n"
         "    compopt -o filenames\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "} && complete -F " +
         function + " " + page.tool + "\n";
}

inline std::string makeZsh(const FlagPage &page) {
  std::string text = "#compdef " + page.tool + "\n_arguments -S \\\n";
  for (const FlagGroup &group : page.groups)
    for (const FlagText &flag : group.flags) {
      bool isShort = flag.name.size() == 1;
      text += std::string("  '*") + (isShort ? "-" : "--") + flag.name +
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

inline std::string makeFish(const FlagPage &page) {
  std::string text;
  for (const FlagGroup &group : page.groups)
    for (const FlagText &flag : group.flags)
      text += "complete -c " + page.tool +
              (flag.name.size() == 1 ? " -s " : " -l ") + flag.name +
              (flag.value.empty()                     ? ""
               : flag.isFile || flag.name.size() == 1 ? " -r"
                                                      : " -x") +
              " -d '" + escapeFish(flag.help) + "'\n";
  return text;
}

} // namespace flag_texts

/// Returns the text of --help: in groups, each flag on a line of its own, or
/// wrapped at `width` columns.
inline std::string describeFlags(const FlagPage &page,
                                 size_t width = std::string::npos) {
  constexpr size_t kIndent = 32;
  std::string text = "OVERVIEW: " + page.tool + " " + page.overview +
                     "\n\nUSAGE: " + page.tool + " " + page.usage + "\n";
  for (const FlagGroup &group : page.groups) {
    text += "\n" + group.name + ":\n";
    for (const FlagText &flag : group.flags) {
      std::string left = "  " + flag_texts::getLeft(flag);
      bool isLong = left.size() + 3 > kIndent;
      text += left;
      if (isLong && width != std::string::npos)
        text += "\n" + std::string(kIndent - 2, ' ');
      else
        text += std::string(isLong ? 1 : kIndent - 2 - left.size(), ' ');
      text += "- " + flag_texts::wrap(flag.help, kIndent, width);
    }
  }
  return text;
}

/// Returns a page of section 1, in the language of man.
inline std::string makeManPage(const FlagPage &page) {
  using flag_texts::escapeRoff;
  std::string title = page.tool;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  std::string text = ".TH " + title + R"( 1 "" "Penstock )" + page.version +
                     "\" \"Penstock\"\n.SH NAME\n" + escapeRoff(page.tool) +
                     " \\- " + escapeRoff(page.overview) +
                     "\n.SH SYNOPSIS\n.B " + escapeRoff(page.tool) + "\n" +
                     escapeRoff(page.usage) + "\n.SH OPTIONS\n";
  for (const FlagGroup &group : page.groups) {
    text += ".SS " + escapeRoff(group.name) + "\n";
    for (const FlagText &flag : group.flags)
      text += ".TP\n.B " + escapeRoff(flag_texts::getLeft(flag)) + "\n" +
              escapeRoff(flag.help) + "\n";
  }
  return text + ".SH EXIT STATUS\n" + page.exitCodes +
         "\n.SH SEE ALSO\nThe pages in share/doc/penstock.\n";
}

/// Returns a script for bash, zsh or fish; empty for another shell.
inline std::string makeCompletion(const FlagPage &page,
                                  std::string_view shell) {
  if (shell == "bash")
    return flag_texts::makeBash(page);
  if (shell == "zsh")
    return flag_texts::makeZsh(page);
  if (shell == "fish")
    return flag_texts::makeFish(page);
  return "";
}

} // namespace penstock

#endif // PENSTOCK_FLAG_TEXTS_H
