#include "envs/hard_maze/map.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace neuroevo {
namespace {

constexpr double kMaxCoordinate = 1e6;
constexpr double kMinLength = 1e-6;  // so that the squared length is precise enough
constexpr size_t kMaxWalls = 10'000;

class MapReader {
 public:
  explicit MapReader(const std::string& file) : file_(file) {}

  MazeMap Read(std::istream& text) {
    text.exceptions(std::ios::badbit);  // otherwise running out of memory would look like the end of the file
    std::string line;
    try {
      for (line_ = 1; std::getline(text, line); ++line_) ReadLine(line.substr(0, line.find('#')));
    } catch (const std::ios::failure&) {
      ThrowInvalid("maze ", file_, " cannot be read");
    }
    for (const char* needed : {"start", "heading", "goal", "wall"}) {
      if (seen_.count(needed) == 0) ThrowInvalid("maze ", file_, " has no line '", needed, "'");
    }
    return std::move(map_);
  }

 private:
  void ReadLine(const std::string& line) {
    const std::vector<std::string> words = SplitWords(line);
    if (words.empty()) return;
    const std::string& what = words.front();
    const bool first = seen_.insert(what).second;
    if (what == "wall") {
      const std::vector<double> ends = Numbers(words, 4, -kMaxCoordinate, kMaxCoordinate);
      const double length = std::hypot(ends[2] - ends[0], ends[3] - ends[1]);
      if (length < kMinLength) Reject("a wall of length ", length, ", expected at least ", kMinLength);
      if (map_.walls.size() == kMaxWalls) Reject("too many walls, expected at most ", kMaxWalls);
      map_.walls.push_back({ends[0], ends[1], ends[2], ends[3]});
      return;
    }
    if (what == "start") {
      const std::vector<double> place = Numbers(words, 2, -kMaxCoordinate, kMaxCoordinate);
      map_.start_x = place[0], map_.start_y = place[1];
    } else if (what == "heading") {
      map_.heading = Numbers(words, 1, 0, 360)[0];
    } else if (what == "goal") {
      const std::vector<double> place = Numbers(words, 2, -kMaxCoordinate, kMaxCoordinate);
      map_.goal_x = place[0], map_.goal_y = place[1];
    } else {
      Reject("'", what, "', expected start, heading, goal or wall");
    }
    if (!first) Reject("a second '", what, "', expected one");
  }

  // Parse the `count` numbers after the first word, each in [low, high].
  std::vector<double> Numbers(const std::vector<std::string>& words, size_t count, double low, double high) const {
    const std::string& what = words.front();
    if (words.size() != count + 1) Reject(words.size() - 1, " values of '", what, "', expected ", count);
    std::vector<double> numbers(count);
    for (size_t i = 0; i < count; ++i) {
      const std::string& word = words[i + 1];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), numbers[i]);
      // "< low or > high" would accept NaN.
      if (error != std::errc() || end != word.data() + word.size() || !(numbers[i] >= low && numbers[i] <= high)) {
        Reject("'", word, "' in '", what, "', expected a number in [", low, ", ", high, "]");
      }
    }
    return numbers;
  }

  template <class... Parts>
  [[noreturn]] void Reject(const Parts&... parts) const {
    ThrowInvalid("maze ", file_, " line ", line_, " has ", parts...);
  }

  const std::string& file_;
  MazeMap map_;
  std::set<std::string> seen_;  // first words of the lines read so far
  int line_ = 0;
};

}  // namespace

MazeMap ReadMazeMap(const std::string& file) {
  std::ifstream text(file);
  if (!text) ThrowNotFound("maze ", file, " cannot be opened");
  return MapReader(file).Read(text);
}

}  // namespace neuroevo
