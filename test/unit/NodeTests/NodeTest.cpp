//===- NodeTest.cpp - ONNX's node tests -----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All models of libonnx-testdata, each in a process of its own: passed, refused
// with a clear error, wrong or crashed. The last two fail the test, and so does
// a refusal that refused.txt does not list. PENSTOCK_NODE_TESTS=PATTERN runs
// those whose name contains the pattern and says all about them;
// PENSTOCK_UPDATE_NODE_TESTS=1 writes refused.txt anew.
// PENSTOCK_NODE_TESTS_DATA names another folder of cases, whose refusals are
// listed nowhere.
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "test/unit/ScratchFolder.h"

#include "gtest/gtest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace penstock::test;
namespace fs = std::filesystem;

namespace {

/// Where the cases are; those of another version of ONNX lie elsewhere.
const char *const ownRoot = "/usr/share/libonnx-testdata/data/node";
const char *const otherRoot = std::getenv("PENSTOCK_NODE_TESTS_DATA");
const char *const root = otherRoot ? otherRoot : ownRoot;

/// A case on its way: what its process writes is collected from a pipe.
struct Job {
  std::string name;
  pid_t process = -1;
  int pipe = -1;
};

struct Report {
  Outcome outcome;
  std::string type;
  bool isFloat = false;
};

/// The child: one line for the outcome, the rest is the message.
[[noreturn]] void runChild(mlir::MLIRContext &context, const std::string &root,
                           const std::string &name, const std::string &scratch,
                           int pipe) {
  // A loop without end is a crash, too.
  alarm(60);
  std::string own = scratch + "/" + name;
  fs::create_directory(own);
  NodeTestCase testCase;
  Outcome outcome = runCase(context, root + "/" + name, own, testCase);
  std::string text =
      std::string(1, outcome.kind) + (outcome.folded ? '1' : '0') +
      (testCase.isFloat ? '1' : '0') + testCase.type + "\n" + outcome.message;
  size_t done = 0;
  while (done < text.size()) {
    ssize_t count = write(pipe, text.data() + done, text.size() - done);
    if (count <= 0)
      break;
    done += static_cast<size_t>(count);
  }
  _exit(0);
}

Job start(mlir::MLIRContext &context, const std::string &root,
          const std::string &name, const std::string &scratch) {
  int ends[2];
  Job job{name};
  if (pipe(ends) != 0)
    return job;
  job.process = fork();
  if (job.process == 0) {
    close(ends[0]);
    runChild(context, root, name, scratch, ends[1]);
  }
  close(ends[1]);
  job.pipe = ends[0];
  return job;
}

Report finish(const Job &job) {
  std::string text;
  char block[4096];
  ssize_t count;
  while ((count = read(job.pipe, block, sizeof(block))) > 0)
    text.append(block, static_cast<size_t>(count));
  close(job.pipe);
  int status = 0;
  waitpid(job.process, &status, 0);
  Report report;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.size() < 3) {
    report.outcome.message =
        WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                            : "exit " + std::to_string(WEXITSTATUS(status));
    report.type = "?";
    return report;
  }
  size_t line = text.find('\n');
  report.outcome = {static_cast<Outcome::Kind>(text[0]), text[1] == '1',
                    text.substr(line + 1)};
  report.isFloat = text[2] == '1';
  report.type = text.substr(3, line - 3);
  return report;
}

/// The names of refused.txt, which stand before a colon.
std::set<std::string> readRefused() {
  std::set<std::string> names;
  std::ifstream file(PENSTOCK_REFUSED_NODE_TESTS);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#')
      names.insert(line.substr(0, line.find(':')));
  return names;
}

/// Without the place of the node in a model of one: why it is refused.
std::string shorten(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

void writeRefused(const std::map<std::string, Report> &reports) {
  std::ofstream file(PENSTOCK_REFUSED_NODE_TESTS);
  file << "# The node tests of libonnx-testdata that are refused, and the "
          "error. Written by\n# PENSTOCK_UPDATE_NODE_TESTS=1 OnnxNodeTests.\n";
  for (const auto &[name, report] : reports)
    if (report.outcome.kind == Outcome::Refused)
      file << name << ": " << shorten(report.outcome.message) << "\n";
}

/// One line per operator, the float cases apart in the total.
void printCounts(const std::map<std::string, Report> &reports) {
  std::map<std::string, std::map<char, int>> counts;
  std::map<char, int> total, floats;
  int folded = 0;
  for (const auto &[name, report] : reports) {
    ++counts[report.type][report.outcome.kind];
    ++total[report.outcome.kind];
    floats[report.outcome.kind] += report.isFloat;
    folded += report.outcome.folded;
  }
  for (auto &[type, count] : counts)
    std::printf("[ node tests ] %-28s %3d passed %3d refused %3d wrong %3d "
                "crashed\n",
                type.c_str(), count['p'], count['r'], count['w'], count['c']);
  std::printf("[ node tests ] %-28s %3d passed %3d refused %3d wrong %3d "
              "crashed, %d folded as well\n",
              "in all", total['p'], total['r'], total['w'], total['c'], folded);
  std::printf("[ node tests ] %-28s %3d passed %3d refused %3d wrong %3d "
              "crashed\n",
              "with floats", floats['p'], floats['r'], floats['w'],
              floats['c']);
}

/// Runs the cases of a folder whose name contains the pattern, if there is one.
std::map<std::string, Report> runAll(const std::string &root,
                                     const char *pattern) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(root)) {
    std::string name = entry.path().filename();
    if (!pattern || name.find(pattern) != std::string::npos)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  ScratchFolder scratch;
  if (scratch.path.empty()) {
    ADD_FAILURE() << "cannot make a temporary folder";
    return {};
  }

  // Children inherit the context: it is made once.
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  unsigned workers = std::max(2u, std::thread::hardware_concurrency());
  std::map<std::string, Report> reports;
  std::vector<Job> jobs;
  for (size_t next = 0; next < names.size() || !jobs.empty();) {
    while (next < names.size() && jobs.size() < workers)
      jobs.push_back(start(*context, root, names[next++], scratch.path));
    reports[jobs.front().name] = finish(jobs.front());
    jobs.erase(jobs.begin());
  }
  return reports;
}

TEST(NodeTests, PassOrAreRefused) {
  if (!fs::exists(root))
    GTEST_SKIP() << "install libonnx-testdata for " << root;
  const char *pattern = std::getenv("PENSTOCK_NODE_TESTS");
  std::map<std::string, Report> reports = runAll(root, pattern);
  std::set<std::string> expected = readRefused();
  for (const auto &[name, report] : reports) {
    const Outcome &outcome = report.outcome;
    EXPECT_NE(outcome.kind, Outcome::Wrong) << name << ": " << outcome.message;
    EXPECT_NE(outcome.kind, Outcome::Crashed)
        << name << ": " << outcome.message;
    if (outcome.kind == Outcome::Refused) {
      EXPECT_TRUE(otherRoot || expected.count(name))
          << name << " is refused, and refused.txt does not list it: "
          << outcome.message;
      // Whoever reads it must know which part of the model is meant.
      EXPECT_TRUE(outcome.message.find("node") != std::string::npos ||
                  outcome.message.find("put '") != std::string::npos ||
                  outcome.message.find("model") != std::string::npos)
          << name << ": " << outcome.message;
    } else if (outcome.kind == Outcome::Passed && expected.count(name)) {
      std::printf("[ node tests ] %s passes: refused.txt need not list it\n",
                  name.c_str());
    }
    if (pattern)
      std::printf("[ node tests ] %s: %c%s %s\n", name.c_str(), outcome.kind,
                  outcome.folded ? ", folds" : "", outcome.message.c_str());
  }
  printCounts(reports);
  if (otherRoot)
    return;
  if (std::getenv("PENSTOCK_UPDATE_NODE_TESTS") && !pattern)
    writeRefused(reports);
  EXPECT_TRUE(pattern || reports.size() > 900) << "there are fewer cases";
}

/// The fused forms of com.microsoft, as ONNX Runtime computed them; none of
/// them is refused.
TEST(NodeTests, FusedFormsOfOnnxRuntime) {
  std::map<std::string, Report> reports =
      runAll(PENSTOCK_CONTRIB_NODE_TESTS, nullptr);
  for (const auto &[name, report] : reports)
    EXPECT_EQ(report.outcome.kind, Outcome::Passed)
        << name << ": " << report.outcome.message;
  EXPECT_EQ(reports.size(), 37u);
}

} // namespace
