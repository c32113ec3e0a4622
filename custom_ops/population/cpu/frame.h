// Memory layout of an image for the convolution that reads it.
#ifndef NEUROEVO_POPULATION_CPU_FRAME_H_
#define NEUROEVO_POPULATION_CPU_FRAME_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "networks/network.h"

namespace neuroevo {

// Layout with rows of `pitch` values and a border of zeros around the image. All fields count values, not bytes.
struct Frame {
  int64_t height, row_values;  // size of the image
  int64_t first;               // offset of its first value
  int64_t pitch;               // distance between rows
  int64_t size;                // total size with borders

  // Layout of an image read by `reader`, which may be null. Only a convolution requires a border.
  Frame(const std::array<int, 3>& shape, const Layer* reader) {
    const auto [image_height, width, channels] = shape;
    int64_t top = 0, left = 0, rows = image_height, columns = width;
    if (reader != nullptr && reader->kind == Layer::Kind::kConv) {
      top = reader->pad_top;
      left = reader->pad_left;
      rows = std::max(top + rows, int64_t{reader->out[0] - 1} * reader->stride + reader->kernel_h);
      columns = std::max(left + columns, int64_t{reader->out[1] - 1} * reader->stride + reader->kernel_w);
    }
    height = image_height;
    row_values = int64_t{width} * channels;
    pitch = columns * channels;
    first = top * pitch + left * channels;
    size = rows * pitch;
  }

  template <class T>
  T* Row(T* base, int64_t y) const {
    return base + first + y * pitch;
  }

  // Fills row y of the image by calling write(y, row) and sets the border to zero.
  template <class T, class Write>
  void Fill(T* base, const Write& write) const {
    T* border = base;  // start of the border values before the next row
    for (int64_t y = 0; y < height; ++y) {
      T* row = Row(base, y);
      std::fill(border, row, T{0});
      write(y, row);
      border = row + row_values;
    }
    std::fill(border, base + size, T{0});
  }

  template <class T>
  void ZeroBorder(T* base) const {
    Fill(base, [](int64_t, T*) {});
  }
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FRAME_H_
