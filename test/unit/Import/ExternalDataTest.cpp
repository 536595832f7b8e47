//===- ExternalDataTest.cpp - Weights beside the model --------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model may refer to, and everything that it may not.
//===----------------------------------------------------------------------===//

#include "Files.h"

#include "lib/Import/ExternalData.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

using namespace llvm;
using namespace penstock::onnx;
using namespace penstock::test;

namespace {

class ExternalData : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::create_directory(outer / "models"));
    ASSERT_FALSE(sys::fs::create_directory(outer / "models/sub"));
    model = outer.write("models/m.onnx", "model");
    outer.write("models/m.data", std::string(32, 'x'));
    outer.write("models/sub/deep.data", std::string(24, 'x'));
    outer.write("secret", std::string(24, 'x'));
  }

  Expected<ExternalRange>
  resolve(std::vector<std::pair<std::string, std::string>> entries) {
    TensorRecord tensor;
    tensor.name = "w";
    tensor.external = true;
    tensor.externalData = std::move(entries);
    return resolveExternalData(tensor, model, 24);
  }
  std::string
  errorOf(std::vector<std::pair<std::string, std::string>> entries) {
    Expected<ExternalRange> range = resolve(std::move(entries));
    return range ? "" : toString(range.takeError());
  }

  Folder outer;
  std::string model;
};

} // namespace

TEST_F(ExternalData, ResolvesARange) {
  Expected<ExternalRange> range =
      resolve({{"location", "m.data"}, {"offset", "8"}, {"length", "24"}});
  ASSERT_TRUE(bool(range)) << toString(range.takeError());
  EXPECT_EQ(range->file, outer / "models/m.data");
  EXPECT_EQ(range->offset, 8u);
  EXPECT_EQ(range->length, 24u);
}

// Without a length the data reaches to the end of the file.
TEST_F(ExternalData, LengthIsOptional) {
  Expected<ExternalRange> range =
      resolve({{"location", "m.data"}, {"offset", "8"}});
  ASSERT_TRUE(bool(range)) << toString(range.takeError());
  EXPECT_EQ(range->length, 24u);
}

TEST_F(ExternalData, FollowsFoldersAndLinksInside) {
  ASSERT_EQ(symlink("sub/deep.data", (outer / "models/link").c_str()), 0);
  for (const char *name : {"sub/deep.data", "link"}) {
    Expected<ExternalRange> range = resolve({{"location", name}});
    EXPECT_TRUE(bool(range)) << toString(range.takeError());
  }
}

TEST_F(ExternalData, RefusesPathsOutOfTheFolder) {
  EXPECT_EQ(errorOf({{"location", "../secret"}}),
            "external data of initializer 'w': path '../secret' must not "
            "contain '..'");
  EXPECT_EQ(errorOf({{"location", "sub/../../secret"}}),
            "external data of initializer 'w': path 'sub/../../secret' must "
            "not contain '..'");
  std::string absolute = outer / "secret";
  EXPECT_EQ(errorOf({{"location", absolute}}),
            "external data of initializer 'w': path '" + absolute +
                "' must be relative to the model's folder");
  ASSERT_EQ(symlink("../secret", (outer / "models/link").c_str()), 0);
  EXPECT_EQ(errorOf({{"location", "link"}}),
            "external data of initializer 'w': '" + (outer / "models/link") +
                "' leads out of the model's folder");
  ASSERT_EQ(symlink("..", (outer / "models/up").c_str()), 0);
  EXPECT_EQ(errorOf({{"location", "up/secret"}}),
            "external data of initializer 'w': '" +
                (outer / "models/up/secret") +
                "' leads out of the model's folder");
}

// A folder whose name begins like the model's is another folder.
TEST_F(ExternalData, ComparesWholeNames) {
  ASSERT_FALSE(sys::fs::create_directory(outer / "models2"));
  outer.write("models2/d", std::string(24, 'x'));
  ASSERT_EQ(symlink("../models2/d", (outer / "models/link").c_str()), 0);
  EXPECT_NE(errorOf({{"location", "link"}}), "");
}

TEST_F(ExternalData, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(errorOf({{"location", "sub"}}),
            "external data of initializer 'w': '" + (outer / "models/sub") +
                "' is not a regular file");
  ASSERT_EQ(mkfifo((outer / "models/pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorOf({{"location", "pipe"}}),
            "external data of initializer 'w': '" + (outer / "models/pipe") +
                "' is not a regular file");
  EXPECT_EQ(errorOf({{"location", "absent"}}),
            "external data of initializer 'w': '" + (outer / "models/absent") +
                "': No such file or directory");
  EXPECT_EQ(errorOf({}), "external data of initializer 'w': it names no file");
}

TEST_F(ExternalData, RefusesWrongRanges) {
  EXPECT_EQ(
      errorOf({{"location", "m.data"}, {"offset", "9"}, {"length", "24"}}),
      "external data of initializer 'w': bytes 9 to 33 are not in '" +
          (outer / "models/m.data") + "', which has 32");
  EXPECT_EQ(errorOf({{"location", "m.data"},
                     {"offset", "8"},
                     {"length", "18446744073709551615"}}),
            "external data of initializer 'w': bytes 8 to 7 are not in '" +
                (outer / "models/m.data") + "', which has 32");
  EXPECT_EQ(errorOf({{"location", "m.data"}, {"length", "20"}}),
            "external data of initializer 'w': its type needs 24 bytes, but "
            "20 are given");
  EXPECT_EQ(errorOf({{"location", "m.data"}}),
            "external data of initializer 'w': its type needs 24 bytes, but "
            "32 are given");
  EXPECT_EQ(errorOf({{"location", "m.data"}, {"offset", "-8"}}),
            "external data of initializer 'w': offset '-8' is not a number");
}
