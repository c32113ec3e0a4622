#include "core/text.h"

#include <string>
#include <vector>

#include "native/check.h"

using namespace neuroevo;

using Texts = std::vector<std::string>;

TEST(Words) {
  CHECK(SplitWords("") == Texts{});
  CHECK(SplitWords(" \t\r\n") == Texts{});
  CHECK(SplitWords("dense") == Texts{"dense"});
  CHECK(SplitWords("  dense\t8\v 0.70710678118654757\r\n") == (Texts{"dense", "8", "0.70710678118654757"}));
}

TEST(Lines) {
  CHECK(SplitLines("") == Texts{});
  CHECK(SplitLines("\n") == Texts{""});
  CHECK(SplitLines("one") == Texts{"one"});
  CHECK(SplitLines("one\n\n two\n") == (Texts{"one", "", " two"}));
}
