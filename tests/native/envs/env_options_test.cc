// Reading of an environment family's options.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "envs/env.h"
#include "native/check.h"

using namespace neuroevo;

TEST(Options) {
  OptionReader options("toy", {{"a", "12"}, {"b", "-3"}, {"c", "text"}, {"low", "-9223372036854775808"}, {"", "7"}});
  CHECK_EQ(options.Int("a", 0, 12, 12), 12);
  CHECK_EQ(options.Int("b", 0, -5, 5), -3);
  CHECK_EQ(options.Int("missing", 4, 0, 9), 4);
  CHECK_EQ(options.String("c", "x"), "text");
  CHECK_EQ(options.String("other", "x"), "x");
  CHECK_EQ(options.Int("low", 0, std::numeric_limits<int64_t>::min(), 0), std::numeric_limits<int64_t>::min());
  CHECK_THROWS(options.Finish(), "toy has no option '', expected one of: a, b, missing, c, other, low");
  CHECK_EQ(options.Int("", 0, 0, 9), 7);
  options.Finish();
}

TEST(OptionTexts) {
  CHECK(ParseEnvOptions({}).empty());
  const EnvOptions parsed = ParseEnvOptions({"rom=/a=b", "empty=", "=7"});  // the first equals sign parts
  CHECK(parsed == (EnvOptions{{"rom", "/a=b"}, {"empty", ""}, {"", "7"}}));
  CHECK_THROWS(ParseEnvOptions({"a=1", "frames"}), "option 'frames' is not of the form key=value");
  CHECK_THROWS(ParseEnvOptions({"a=1", "b=2", "a=1"}), "option 'a' is given twice");
}

TEST(MalformedInts) {
  for (const std::string text : {"", " ", "five", "5x", "x5", " 5", "5 ", "+5", "5.0", "1e3", "0x10", "--5", "-",
                                 "9223372036854775808", "99999999999999999999", "11", "-1"}) {
    OptionReader options("toy", {{"n", text}});
    CHECK_THROWS(options.Int("n", 5, 0, 10), "toy option n is '" + text + "', expected an integer in [0, 10]");
  }
  CHECK_EQ(OptionReader("toy", {{"n", "007"}}).Int("n", 5, 0, 10), 7);
}

TEST(OptionalInts) {
  OptionReader options("toy", {{"n", "3"}, {"far", "11"}});
  CHECK(options.OptionalInt("n", 0, 9) == std::optional<int64_t>(3));
  CHECK(options.OptionalInt("missing", 0, 9) == std::nullopt);
  CHECK_THROWS(options.OptionalInt("far", 0, 9), "toy option far is '11', expected an integer in [0, 9]");
}

TEST(ListsOfInts) {
  OptionReader options("toy", {{"a", "3,0,9"}, {"b", "7"}, {"c", ""}});
  CHECK(options.Ints("a", 0, 9) == (std::vector<int64_t>{3, 0, 9}));
  CHECK(options.Ints("b", 0, 9) == (std::vector<int64_t>{7}));
  CHECK(options.Ints("c", 0, 9).empty() && options.Ints("missing", 0, 9).empty());
  for (const std::string text : {",", "1,,2", "1, 2", "1;2", "10", "1,-1", "x"}) {
    OptionReader reader("toy", {{"n", text}});
    CHECK_THROWS(reader.Ints("n", 0, 9), "toy option n is '" + text + "', expected integers in [0, 9] between commas");
  }
}

TEST(Doubles) {
  OptionReader options("toy", {{"a", "0.25"}, {"b", "1e-07"}, {"c", "1"}, {"low", "-2"}});
  CHECK_EQ(options.Double("a", 0, 0, 1), 0.25);
  CHECK_EQ(options.Double("b", 0, 0, 1), 1e-7);
  CHECK_EQ(options.Double("c", 0, 0, 1), 1.0);
  CHECK_EQ(options.Double("low", 0, -2, 1), -2.0);
  CHECK_EQ(options.Double("missing", 0.5, 0, 1), 0.5);
  for (const std::string text : {"", " ", "half", "0.5x", " 0.5", "0,5", "+0.5", "1.0000001", "-0.1", "nan", "inf",
                                 "-inf", "1e999", "0x1", "true"}) {
    OptionReader reader("toy", {{"p", text}});
    CHECK_THROWS(reader.Double("p", 0, 0, 1), "toy option p is '" + text + "', expected a number in [0, 1]");
  }
}

TEST(NumbersWithoutBounds) {
  OptionReader options("toy", {{"a", "-2.5e300"}, {"bad", "inf"}, {"worse", "nan"}, {"text", "1x"}});
  CHECK_EQ(options.Double("a", 0), -2.5e300);
  CHECK_EQ(options.Double("missing", 7), 7.0);
  CHECK_THROWS(options.Double("bad", 0), "toy option bad is 'inf', expected a finite number");
  CHECK_THROWS(options.Double("worse", 0), "toy option worse is 'nan', expected a finite number");
  CHECK_THROWS(options.Double("text", 0), "toy option text is '1x', expected a finite number");
}

TEST(Ranges) {
  OptionReader options("toy", {{"a", "-0.5,2"}, {"b", "-inf,inf"}, {"c", "3,3"}});
  const OptionReader::Range a = options.ReadRange("a", {0, 1}), b = options.ReadRange("b", {0, 1});
  CHECK_EQ(a.low, -0.5);
  CHECK_EQ(a.high, 2.0);
  CHECK(a.Inside(-0.4) && !a.Inside(-0.5) && !a.Inside(2) && !a.Inside(NAN));
  CHECK(b.Inside(1e308) && !b.Inside(INFINITY));
  CHECK_EQ(options.ReadRange("c", {0, 1}).high, 3.0);
  CHECK_EQ(options.ReadRange("missing", {0, 1}).high, 1.0);
  for (const std::string text : {"", ",", "1", "1,", ",1", "2,1", "nan,1", "1,nan", "1,2,3", "1, 2"}) {
    OptionReader reader("toy", {{"r", text}});
    CHECK_THROWS(reader.ReadRange("r", {0, 1}),
                 "toy option r is '" + text + "', expected two numbers low,high with low <= high");
  }
}

TEST(Bools) {
  OptionReader options("toy", {{"yes", "true"}, {"no", "false"}});
  CHECK_EQ(options.Bool("yes", false), true);
  CHECK_EQ(options.Bool("no", true), false);
  CHECK_EQ(options.Bool("missing", true), true);
  CHECK_EQ(options.Bool("absent", false), false);
  for (const std::string text : {"", "True", "1", "0", "yes", "true "}) {
    OptionReader reader("toy", {{"b", text}});
    CHECK_THROWS(reader.Bool("b", false), "toy option b is '" + text + "', expected true or false");
  }
}

TEST(Choices) {
  OptionReader options("toy", {{"color", "blue"}, {"bad", "Blue"}});
  CHECK_EQ(options.OneOf("color", {"red", "blue"}), "blue");
  CHECK_EQ(options.OneOf("missing", {"red", "blue"}), "red");
  CHECK_THROWS(options.OneOf("bad", {"red", "blue"}), "toy option bad is 'Blue', expected one of: red, blue");
}
