// Marks of images, compared with values that are checked one by one.
#include "population/cpu/float32/image_marks.h"

#include <vector>

#include "core/philox.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

struct Image {
  int64_t rows, values;
  std::vector<float> memory;

  Image(int64_t r, int64_t v, uint64_t seed) : rows(r), values(v), memory(r * v + kLanes) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = PhiloxWords(seed, i).word[0] % 4 == 0 ? 1.0f : 0.0f;
  }
  bool At(int64_t y, int64_t i) const { return memory[y * values + i] != 0; }
};

int64_t Mark(const Image& image, ImageMarks* marks) {
  int64_t count = 0;
  for (int64_t y = 0; y < image.rows; ++y) {
    const float* row = image.memory.data() + y * image.values;
    count += marks->SetRow(y, [&](int64_t i) { return NonZero(Floats::Load(row + i)); });
  }
  return count;
}

}  // namespace

TEST(MarksAreReadFromEveryStep) {
  ImageMarks marks;  // reused for several sizes
  for (int64_t values : {331, 1, 5, 63, 64, 65, 200}) {
    for (int64_t step : {1, 2, 3, 4, 6, 8, 12, 20, 64, 65}) {
      const Image image(3, values, values * 100 + step);
      marks.Reset(image.rows, values, step);
      int64_t expected = 0;
      for (int64_t i = 0; i < image.rows * values; ++i) expected += image.memory[i] != 0;
      CHECK_EQ(Mark(image, &marks), expected);
      for (int64_t y = 0; y < image.rows; ++y) {
        for (int64_t first = 0; first < values; first += step) {
          const uint64_t word = ImageMarks::Read(marks.At(0, first) + y * marks.pitch());
          CHECK_EQ(word, ImageMarks::Read(marks.At(y, first)));
          for (int64_t i = first; i < values && i < first + ImageMarks::kWord; ++i) {
            CHECK_EQ((word >> (i - first) & 1) != 0, image.At(y, i));
          }
        }
      }
    }
  }
}

TEST(JoinedRows) {
  ImageMarks marks;
  for (int64_t values : {150, 7, 64}) {
    const Image image(5, values, values);
    marks.Reset(image.rows, values, 8);
    Mark(image, &marks);
    for (int64_t first = 0; first + 2 <= image.rows; ++first) {
      marks.Join(first, 2);
      for (int64_t i = 0; i < values; ++i) {
        for (int64_t n : {int64_t{1}, int64_t{3}, values - i}) {
          bool any = false;
          for (int64_t j = i; j < i + n && j < values; ++j) any = any || image.At(first, j) || image.At(first + 1, j);
          if (i + n <= values) CHECK_EQ(marks.AnyJoined(i, n), any);
        }
      }
    }
  }
}

TEST(FirstMarks) {
  CHECK_EQ(ImageMarks::FirstOf(0), uint64_t{0});
  CHECK_EQ(ImageMarks::FirstOf(1), uint64_t{1});
  CHECK_EQ(ImageMarks::FirstOf(63), ~uint64_t{0} >> 1);
  CHECK_EQ(ImageMarks::FirstOf(64), ~uint64_t{0});
  CHECK_EQ(ImageMarks::FirstOf(900), ~uint64_t{0});
}
