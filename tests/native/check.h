// A test framework in one header: TEST(name) { CHECK...; } anywhere in the file, and main() comes with it.
// A failed check throws, which ends its test; SKIP("reason") ends it without failing.
#ifndef NEUROEVO_TESTS_NATIVE_CHECK_H_
#define NEUROEVO_TESTS_NATIVE_CHECK_H_

#include <cstdio>
#include <exception>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

struct Register {
  Register(const char* name, void (*run)()) { Tests().push_back({name, run}); }
};

struct Skipped {
  std::string reason;
};

[[noreturn]] inline void Fail(const char* file, int line, const std::string& what) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

// Prints what CHECK_EQ compared: a number (a uint8 as one too), a string, or a container as [a, b, ...].
template <typename T>
void Print(std::ostream& out, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    out << +value;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    out << '"' << std::string_view(value) << '"';
  } else {
    out << '[';
    for (const auto& element : value) Print(out << (&element == &*std::begin(value) ? "" : ", "), element);
    out << ']';
  }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"  // CHECK_EQ(rows.size(), 3) is fine
template <typename A, typename B>
void Equal(const A& a, const B& b, const char* a_text, const char* b_text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream what;
  what.precision(17);  // enough to tell any two doubles apart
  Print(what << "CHECK_EQ(" << a_text << ", " << b_text << "): ", a);
  Print(what << " is not ", b);
  Fail(file, line, what.str());
}
#pragma GCC diagnostic pop

inline int Main() {
  int passed = 0, failed = 0, skipped = 0;
  for (const Test& test : Tests()) {
    try {
      test.run();
      ++passed;
    } catch (const Skipped& skip) {
      ++skipped;
      std::printf("SKIPPED %s: %s\n", test.name, skip.reason.c_str());
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s: %s\n", test.name, error.what());
    } catch (...) {
      ++failed;
      std::printf("FAILED %s: something that is no std::exception was thrown\n", test.name);
    }
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                  \
  static void Test_##name();                                        \
  static const check::Register register_##name(#name, Test_##name); \
  static void Test_##name()

#define CHECK(cond)                                                            \
  do {                                                                         \
    if (!(cond)) check::Fail(__FILE__, __LINE__, "CHECK(" #cond ") is false"); \
  } while (false)

#define CHECK_EQ(a, b) check::Equal(a, b, #a, #b, __FILE__, __LINE__)

// `expr` must throw a std::exception whose message contains `part`.
#define CHECK_THROWS(expr, part)                                                                                   \
  do {                                                                                                             \
    std::string check_what, check_part = part;                                                                     \
    bool check_threw = false;                                                                                      \
    try {                                                                                                          \
      (void)(expr);                                                                                                \
    } catch (const std::exception& error) {                                                                        \
      check_threw = true;                                                                                          \
      check_what = error.what();                                                                                   \
    }                                                                                                              \
    if (!check_threw) check::Fail(__FILE__, __LINE__, "CHECK_THROWS(" #expr "): nothing was thrown");              \
    if (check_what.find(check_part) == std::string::npos)                                                          \
      check::Fail(__FILE__, __LINE__, "CHECK_THROWS(" #expr "): '" + check_what + "' lacks '" + check_part + "'"); \
  } while (false)

// What a child of a process with threads can do. To ThreadSanitizer its new threads are its parent's, and the locks of
// AddressSanitizer's memory stay locked if another thread held them at the fork.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kForksStartThreads = false;
#else
inline constexpr bool kForksStartThreads = true;
#endif
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kForksFindMemory = false;
#else
inline constexpr bool kForksFindMemory = true;
#endif

#define SKIP(reason) \
  throw check::Skipped { reason }

int main() { return check::Main(); }

#endif  // NEUROEVO_TESTS_NATIVE_CHECK_H_
