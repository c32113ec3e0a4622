// Positions of an image that differ from the slot's previous image, and the convolution outputs that depend on them.
#ifndef NEUROEVO_POPULATION_CPU_CHANGES_H_
#define NEUROEVO_POPULATION_CPU_CHANGES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

class Changes {
 public:
  // Clears all marks, for images of that height and width. The memory grows to the largest image and is kept.
  void Reset(const std::array<int, 3>& shape) {
    width_ = shape[1];
    marks_.assign(int64_t{shape[0]} * width_, 0);
    rows_.assign(shape[0], 0);
  }

  void Mark(int64_t y, int64_t x) {
    marks_[y * width_ + x] = 1;
    rows_[y] = 1;
  }

  // Overwrites `row` of an image with the row of the next image and marks the pixels that differ.
  template <class T>
  void TakeRow(int64_t y, int channels, const T* next, T* row) {
    const int64_t bytes = int64_t{width_} * channels * static_cast<int64_t>(sizeof(T));
    if (memcmp(row, next, bytes) == 0) return;
    rows_[y] = 1;
    switch (channels) {
      case 1:
        return MarkPixels<T, 1>(y, channels, next, row);
      case 3:
        return MarkPixels<T, 3>(y, channels, next, row);
      case 4:
        return MarkPixels<T, 4>(y, channels, next, row);
      default:
        return MarkPixels<T, 0>(y, channels, next, row);
    }
  }

  bool RowChanged(int64_t y) const { return rows_[y] != 0; }

  // Calls use(y, x), in order, for the outputs of a convolution of this image whose windows have changed.
  template <class Use>
  void ForOutputs(const Layer& conv, const Use& use) {
    const int64_t pixels = int64_t{conv.out[1] - 1} * conv.stride + conv.kernel_w;
    for (int y = 0; y < conv.out[0]; ++y) {
      const int64_t top = int64_t{y} * conv.stride - conv.pad_top;
      const int64_t first = std::max<int64_t>(0, top),
                    last = std::min<int64_t>(static_cast<int64_t>(rows_.size()), top + conv.kernel_h);
      bool any = false;
      for (int64_t in_y = first; in_y < last; ++in_y) {
        if (rows_[in_y] == 0) continue;
        if (!any) joined_.assign(std::max<int64_t>(pixels, conv.pad_left + width_), 0);
        any = true;
        uint8_t* __restrict joined = joined_.data() + conv.pad_left;
        const uint8_t* marks = marks_.data() + in_y * width_;
        for (int64_t x = 0, width = width_; x < width; ++x) joined[x] |= marks[x];
      }
      if (!any) continue;
      for (int x = 0; x < conv.out[1]; ++x) {
        const uint8_t* window = joined_.data() + int64_t{x} * conv.stride;
        uint8_t changed = 0;
        for (int kw = 0; kw < conv.kernel_w; ++kw) changed |= window[kw];
        if (changed != 0) use(y, x);
      }
    }
  }

 private:
  // kChannels: number of channels as a constant, so that the loop is vectorized, or 0 for any number.
  template <class T, int kChannels>
  void MarkPixels(int64_t y, int any_channels, const T* next, T* row) {
    const int64_t width = width_, bytes = int64_t{sizeof(T)} * (kChannels == 0 ? any_channels : kChannels);
    const char *a = reinterpret_cast<const char*>(next), *b = reinterpret_cast<const char*>(row);
    uint8_t* __restrict marks = marks_.data() + y * width;
    if constexpr (kChannels * sizeof(T) == sizeof(uint32_t)) {
      for (int64_t x = 0; x < width; ++x) {
        uint32_t first, second;
        memcpy(&first, a + x * sizeof(first), sizeof(first));
        memcpy(&second, b + x * sizeof(second), sizeof(second));
        marks[x] = first != second;
      }
    } else {
      for (int64_t x = 0; x < width; ++x) {
        uint8_t differs = 0;
        for (int64_t i = 0; i < bytes; ++i) differs |= a[x * bytes + i] ^ b[x * bytes + i];
        marks[x] = differs != 0;
      }
    }
    memcpy(row, next, width * bytes);
  }

  int64_t width_ = 0;
  std::vector<uint8_t> marks_;   // [height, width]
  std::vector<uint8_t> rows_;    // [height], whether any mark of the row is set
  std::vector<uint8_t> joined_;  // union of the marks of a window's rows, including the border
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_CHANGES_H_
