// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/byte_text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs::snapshot;

TEST_CASE("only well-formed UTF-8 counts as text") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x90\xB3"));
  CHECK(is_utf8("\xED\x9F\xBF\xF4\x8F\xBF\xBF"));
  CHECK_FALSE(is_utf8("\x80"));
  CHECK_FALSE(is_utf8("\xC3"));
  CHECK_FALSE(is_utf8("\xC0\xAF"));          // overlong
  CHECK_FALSE(is_utf8("\xE0\x80\xAF"));      // overlong
  CHECK_FALSE(is_utf8("\xF0\x80\x80\xAF"));  // overlong
  CHECK_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  CHECK_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(is_utf8("\xE2\x82"));
  CHECK_FALSE(is_utf8("\xF0\x9F\x90"));
  CHECK_FALSE(is_utf8("\xFF"));
}

TEST_CASE("a printed name is one line of UTF-8") {
  CHECK(printable("a b") == "\"a b\"");
  CHECK(printable("say \"hi\" \\ bye") == R"("say \"hi\" \\ bye")");
  CHECK(printable(std::string_view("a\n\0\xFF", 4)) == R"("a\x0a\x00\xff")");
  CHECK(printable("\xC3\xA9") == "\"\xC3\xA9\"");
  const std::string text = printable(std::string(5000, 'x'));
  CHECK(text.size() < 300);
  CHECK(text.ends_with("... (5000 bytes)"));
}

TEST_CASE("base64 has the vectors of RFC 4648 and takes nothing else") {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == std::string(bytes));
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  CHECK(from_base64(to_base64(all)) == all);
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z===", "====", "Zm 9", "Zm-_", "=Zg="}) {
    CAPTURE(bad);
    CHECK_FALSE(from_base64(bad));
  }
}
