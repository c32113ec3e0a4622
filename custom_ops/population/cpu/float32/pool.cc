// max_pool and avg_pool, vectorized over channels.
#include <algorithm>
#include <limits>

#include "core/simd.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

namespace {

// The positions of a window inside the image, along one axis.
struct Range {
  int begin, end;

  Range(int index, int stride, int before, int kernel, int size)
      : begin(std::max(0, index * stride - before)), end(std::min(size, index * stride - before + kernel)) {}
  int count() const { return end - begin; }
};

template <class Merge>
Floats OverWindow(const Range& rows, const Range& columns, const float* in, int64_t in_pitch, int channels,
                  Floats merged, const Merge& merge) {
  for (int y = rows.begin; y < rows.end; ++y) {
    for (int x = columns.begin; x < columns.end; ++x) {
      merged = merge(Floats::Load(in + y * in_pitch + int64_t{x} * channels), merged);
    }
  }
  return merged;
}

}  // namespace

void CpuPool(const Layer& layer, const float* in, int64_t in_pitch, float* out, int64_t out_pitch) {
  const int channels = layer.out[2];
  const bool greatest = layer.kind == Layer::Kind::kMaxPool;
  const Floats least(-std::numeric_limits<float>::infinity()), zero(0.0f);
  for (int y = 0; y < layer.out[0]; ++y) {
    const Range rows(y, layer.stride, layer.pad_top, layer.kernel_h, layer.in[0]);
    for (int x = 0; x < layer.out[1]; ++x) {
      const Range columns(x, layer.stride, layer.pad_left, layer.kernel_w, layer.in[1]);
      const Floats count(static_cast<float>(rows.count() * columns.count()));
      for (int c = 0; c < channels; c += kLanes) {
        const Floats value = greatest ? OverWindow(rows, columns, in + c, in_pitch, channels, least, Max)
                                      : Div(OverWindow(rows, columns, in + c, in_pitch, channels, zero,
                                                       [](Floats a, Floats sum) { return Add(sum, a); }),
                                            count);
        value.StorePartial(out + y * out_pitch + int64_t{x} * channels + c, std::min(kLanes, channels - c));
      }
    }
  }
}

}  // namespace neuroevo
