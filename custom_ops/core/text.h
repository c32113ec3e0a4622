// String splitting without streams, which treat an exception as the end of the input.
#ifndef NEUROEVO_CORE_TEXT_H_
#define NEUROEVO_CORE_TEXT_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace neuroevo {

// Split a text at white space.
inline std::vector<std::string> SplitWords(std::string_view text) {
  constexpr char kSpace[] = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
  return words;
}

// Split a text at newlines; a trailing newline does not start another line.
inline std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_TEXT_H_
