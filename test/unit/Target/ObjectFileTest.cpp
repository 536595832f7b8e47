//===- ObjectFileTest.cpp - Object files, links and their errors ----------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of one function is compiled, linked and run; what can go wrong is
// said in one line that names it, and leaves nothing behind.
//===----------------------------------------------------------------------===//

#include "penstock/Target/ObjectFile.h"
#include "penstock/Target/Link.h"
#include "test/unit/ScratchFolder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;
using namespace penstock;

namespace {

const char *const program = R"mlir(
llvm.func @helper() -> i32 { %0 = llvm.mlir.constant(42 : i32) : i32  llvm.return %0 : i32 }
llvm.func @main() -> i32 { %0 = llvm.call @helper() : () -> i32  llvm.return %0 : i32 }
)mlir";

class ObjectFile : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<LLVM::LLVMDialect>();
    module = parseSourceString<ModuleOp>(program, &context);
    ASSERT_TRUE(module);
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
    ASSERT_FALSE(folder.path.empty());
  }

  std::string path(StringRef name) { return folder / name; }
  size_t fileCount() {
    size_t count = 0;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder.path, error), end;
         it != end && !error; it.increment(error))
      ++count;
    return count;
  }
  void writeObject(const std::string &name, const TargetOptions &options) {
    std::error_code error;
    llvm::raw_fd_ostream stream(name, error);
    ASSERT_FALSE(error);
    ASSERT_TRUE(succeeded(emitObject(*module, options, stream))) << messages;
  }
  Location loc() { return UnknownLoc::get(&context); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string messages;
  penstock::test::ScratchFolder folder;
};

TEST_F(ObjectFile, CompilesLinksAndRuns) {
  for (const char *march : {"native", "x86-64", "x86-64-v3"}) {
    TargetOptions options;
    options.march = march;
    options.exported = {"main"};
    writeObject(path("a.o"), options);
    ASSERT_TRUE(succeeded(linkExecutable({path("a.o")}, path("a"), {}, loc())))
        << messages;
    EXPECT_EQ(llvm::sys::ExecuteAndWait(path("a"), {path("a")}), 42);
  }
  EXPECT_EQ(fileCount(), 2u);
}

TEST_F(ObjectFile, OnlyExportsStayVisible) {
  TargetOptions options;
  options.exported = {"main"};
  writeObject(path("a.o"), options);
  auto file = llvm::object::ObjectFile::createObjectFile(path("a.o"));
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  std::vector<std::string> visible;
  for (const llvm::object::SymbolRef &symbol : file->getBinary()->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Global)
      visible.push_back(llvm::cantFail(symbol.getName()).str());
  EXPECT_EQ(visible, std::vector<std::string>{"main"});
}

TEST_F(ObjectFile, UnknownCpu) {
  EXPECT_TRUE(failed(resolveTargetCpu("pentium9", loc())));
  EXPECT_NE(messages.find("--march=pentium9: LLVM knows no such CPU"),
            std::string::npos);
}

TEST_F(ObjectFile, CpuProperties) {
  FailureOr<TargetCpu> v4 = resolveTargetCpu("x86-64-v4", loc()),
                       v3 = resolveTargetCpu("x86-64-v3", loc()),
                       v1 = resolveTargetCpu("x86-64", loc()),
                       halved = resolveTargetCpu("znver4", loc());
  ASSERT_TRUE(succeeded(v4) && succeeded(v3) && succeeded(v1) &&
              succeeded(halved));
  EXPECT_EQ(v4->vectorWidth, 16);
  EXPECT_EQ(v3->vectorWidth, 8);
  EXPECT_EQ(v1->vectorWidth, 4);
  EXPECT_EQ(v4->unitWidth, 16);
  EXPECT_EQ(v3->unitWidth, 8);
  EXPECT_EQ(halved->vectorWidth, 16);
  EXPECT_EQ(halved->unitWidth, 8);
  EXPECT_EQ(v1->required, "");
  EXPECT_NE(v3->required.find("+avx2"), std::string::npos);
  EXPECT_NE(v3->required.find("+fma"), std::string::npos);
  EXPECT_EQ(v3->required.find("avx512"), std::string::npos);
  EXPECT_NE(v4->required.find("+avx512f"), std::string::npos);
}

TEST_F(ObjectFile, LinkFails) {
  TargetOptions options; // Exports no main.
  writeObject(path("a.o"), options);
  EXPECT_TRUE(failed(linkExecutable({path("a.o")}, path("a"), {}, loc())));
  EXPECT_NE(messages.find("linking " + path("a")), std::string::npos);
  EXPECT_NE(messages.find("main"), std::string::npos);
  EXPECT_EQ(StringRef(messages).count('\n'), 1u);
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(ObjectFile, NoDriver) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "links with the compiler of this build, wherever PATH points";
#endif
  std::string old = std::getenv("PATH");
  setenv("PATH", folder.path.c_str(), 1);
  EXPECT_TRUE(failed(linkExecutable({path("a.o")}, path("a"), {}, loc())));
  setenv("PATH", old.c_str(), 1);
  EXPECT_NE(messages.find("no C++ compiler driver found"), std::string::npos);
  EXPECT_EQ(fileCount(), 0u);
}

} // namespace
