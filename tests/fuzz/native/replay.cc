// Feeds a fuzz target with inputs that are there: TARGET FOLDER|FILE... Of a file that ends with .hex, with the bytes
// that it lists in hexadecimal; what follows a # there is a comment.
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/native/target.h"

namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> FromHex(const std::string& text, const fs::path& path) {
  std::string digits;
  bool comment = false;
  for (const char c : text) {
    comment = c != '\n' && (comment || c == '#');
    if (!comment && !std::isspace(static_cast<unsigned char>(c))) digits += c;
  }
  if (digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    throw std::runtime_error(path.string() + " is not a list of bytes in hexadecimal");
  }
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<uint8_t> ReadInput(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (path.extension() == ".hex") return FromHex(text, path);
  return {text.begin(), text.end()};
}

}  // namespace

int main(int argc, char** argv) {
  std::set<fs::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) paths.insert(argv[i]);
    if (!fs::is_directory(argv[i])) continue;
    for (const auto& entry : fs::directory_iterator(argv[i])) paths.insert(entry.path());
  }
  if (paths.empty()) {
    std::fprintf(stderr, "there are no inputs, expected folders or files of them\n");
    return 2;
  }
  for (const fs::path& path : paths) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);                                 // so that it is known which one failed
    const std::vector<uint8_t> input = ReadInput(path);  // on the heap, where a sanitizer sees its end
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu inputs\n", paths.size());
  return 0;
}
