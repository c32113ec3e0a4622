// Bit mask with one bit per value of an image, so that a convolution can test 64 values of a window at once.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_IMAGE_MARKS_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_IMAGE_MARKS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/simd.h"

namespace neuroevo {

class ImageMarks {
 public:
  static constexpr int kWord = 64;  // marks that are read together

  // Prepares for rows of `values` values, to be read at offsets that are multiples of `step`. The memory grows to the
  // largest image and is kept.
  void Reset(int64_t rows, int64_t values, int64_t step) {
    rows_ = rows;
    values_ = values;
    pitch_ = (values + kWord - 1) / kWord * kBytes;
    shift_ = std::min(3, __builtin_ctzll(step));
    const size_t bytes = (rows * pitch_ << (3 - shift_)) + kBytes;
    if (bytes_.size() < bytes) bytes_.resize(bytes);
  }

  // Marks row y: test(i) is the LaneMask of the values [i, i + kLanes). Returns the number of marked values.
  template <class Test>
  int64_t SetRow(int64_t y, const Test& test) {
    int64_t count = 0;
    // One copy per possible bit offset, so that every mark at which a read may start is the lowest bit of a byte.
    for (int first = 0; first < 8; first += 1 << shift_) {
      uint8_t* bytes = Row(y, first);
      for (int64_t i = first; i < values_; i += kWord, bytes += kBytes) {
        uint64_t word = 0;
        if (values_ - i >= kWord) {
#pragma GCC unroll 16
          for (int j = 0; j < kWord; j += kLanes) word |= uint64_t{test(i + j)} << j;
        } else {
          for (int j = 0; j < values_ - i; j += kLanes) word |= uint64_t{test(i + j)} << j;
          word &= FirstOf(values_ - i);
        }
        memcpy(bytes, &word, kBytes);
        if (first == 0) count += __builtin_popcountll(word);
      }
    }
    return count;
  }

  // Returns the address, for Read, of the marks of row y starting at i, a multiple of `step`. Rows are pitch() apart.
  const uint8_t* At(int64_t y, int64_t i) const { return const_cast<ImageMarks*>(this)->Row(y, i & 7) + (i >> 3); }
  int64_t pitch() const { return pitch_; }

  // Computes the union of the marks of rows [first, first + count).
  void Join(int64_t first, int count) {
    const int64_t words = pitch_ / kBytes;
    joined_.assign(words + 1, 0);
    for (int64_t y = first; y < first + count; ++y) {
      for (int64_t w = 0; w < words; ++w) joined_[w] |= Read(Row(y, 0) + w * kBytes);
    }
  }
  // Returns whether any of the marks [i, i + n) of the joined rows is set.
  bool AnyJoined(int64_t i, int64_t n) const {
    uint64_t any = 0;
    for (int64_t m = 0; m < n; m += kWord) {
      const uint64_t* word = joined_.data() + ((i + m) >> 6);
      const int shift = (i + m) & 63;
      any |= (word[0] >> shift | word[1] << 1 << (63 - shift)) & FirstOf(n - m);
    }
    return any != 0;
  }

  // Reads kWord marks, the first one in the lowest bit; bits after the end of the row are undefined.
  static uint64_t Read(const uint8_t* at) {
    uint64_t word;
    memcpy(&word, at, kBytes);
    return word;
  }
  static uint64_t FirstOf(int64_t n) { return n >= kWord ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

 private:
  static constexpr int kBytes = kWord / 8;

  uint8_t* Row(int64_t y, int64_t first) { return bytes_.data() + ((first >> shift_) * rows_ + y) * pitch_; }

  int64_t rows_ = 0, values_ = 0, pitch_ = 0;
  int shift_ = 3;  // each copy starts 1 << shift_ marks later than the previous one
  std::vector<uint8_t> bytes_;
  std::vector<uint64_t> joined_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_IMAGE_MARKS_H_
