//===- OneLineTest.cpp - Messages stay in a line, and short ---------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What files and command lines bring into messages: control characters, names
// without an end, and lists of any length.
//===----------------------------------------------------------------------===//

#include "penstock/one_line.h"

#include <gtest/gtest.h>

using penstock::toOneLine;

TEST(OneLineTest, EscapesControlCharacters) {
  EXPECT_EQ(toOneLine("a\nb\tc\x1b[0m"), "a\\nb\\tc\\x1b[0m");
}

TEST(OneLineTest, LeavesWhatIsShort) {
  std::string text = "'" + std::string(200, 'x') + "' is no name; give another";
  EXPECT_EQ(toOneLine(text), text);
  EXPECT_EQ(toOneLine(""), "");
  EXPECT_EQ(toOneLine("it's"), "it's");
}

TEST(OneLineTest, CutsNames) {
  std::string longest(200, 'x');
  EXPECT_EQ(toOneLine("'" + longest + "yz' is no name; give another"),
            "'" + longest + "...' is no name; give another");
  EXPECT_EQ(toOneLine("file " + longest + "xyz is empty"),
            "file " + longest + "... is empty");
}

TEST(OneLineTest, CutsNoCharacterInHalf) {
  std::string text = "'";
  for (int i = 0; i < 150; ++i)
    text += "\xc3\xa4";
  std::string line = toOneLine(text + "'");
  EXPECT_EQ(line.size() % 2, 1u); // two quotes, three dots, whole characters
  EXPECT_EQ(line.substr(line.size() - 6), "\xc3\xa4...'");
}

TEST(OneLineTest, CutsTheMiddleOfALine) {
  std::string text = "the shape is ";
  for (int i = 0; i < 1000; ++i)
    text += "2 x ";
  std::string line = toOneLine(text + "2; take fewer dimensions");
  EXPECT_LT(line.size(), 600u);
  EXPECT_EQ(line.rfind("the shape is 2 x 2", 0), 0u);
  EXPECT_NE(line.find(" ... "), std::string::npos);
  std::string end = "2 x 2; take fewer dimensions";
  EXPECT_EQ(line.substr(line.size() - end.size()), end);
}
