// How an image lies in memory for the convolution that reads it.
#ifndef NEUROEVO_POPULATION_CPU_FRAME_H_
#define NEUROEVO_POPULATION_CPU_FRAME_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "networks/network.h"

namespace neuroevo {

// Rows of `pitch` values, with a border of zeros around the image. In values, not bytes.
struct Frame {
  int64_t height, row_values;  // of the image
  int64_t first;               // where its first value is
  int64_t pitch;               // from row to row
  int64_t size;                // with borders

  // For an image that `reader` is the next to read: only a convolution needs a border. reader may be null.
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

  // write(y, place) fills row y of the image; the border becomes zero.
  template <class T, class Write>
  void Fill(T* base, const Write& write) const {
    T* border = base;  // it goes on where a row ends
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
