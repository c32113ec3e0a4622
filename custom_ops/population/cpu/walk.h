// The way of a task's slots through the convolutions and dense layers of a network, and where activations are on it.
//
// Convolutions and pools run slot by slot, on images padded for their next convolution. From the first layer on that
// flattens its input, all slots of the task go through a layer together and share its weight reads. What an activation
// is, and what a layer does to it, is not known here: see float32/plan.cc and int8/backend.cc.
#ifndef NEUROEVO_POPULATION_CPU_WALK_H_
#define NEUROEVO_POPULATION_CPU_WALK_H_

#include <array>
#include <cstdint>

#include "networks/network.h"
#include "population/cpu/frame.h"
#include "population/cpu/scratch.h"

namespace neuroevo {

// Flat activations of all slots, with a cache line of slack each.
template <class T>
struct SlotValues {
  T* first;
  int64_t stride;  // values from slot to slot

  T* Of(int s) const { return first + s * stride; }
};

// A layer reads one of two and writes the other.
template <class T>
struct WalkMemory {
  Scratch<T> image[2], flat[2];
};

inline bool Flattens(const Layer& layer) {
  return layer.kind == Layer::Kind::kDense || layer.kind == Layer::Kind::kRecall || layer.kind == Layer::Kind::kCell;
}

// Takes slots [0, slots) with inputs of that shape through steps, which may be none: steps[i].layer is a convolution or
// a pool, or one that flattens its input. Returns what the last step has written. The layers' part:
//   Load(s, frame, out)                slot s's input becomes an image in that frame
//   Convolve(i, s, from, in, to, out)  step i takes slot s from an image to the next, each in its frame
//   Dense(i, in, out)                  step i, which flattens its input, takes all slots to their next values
// An image is written with its border.
template <class T, class Steps, class Layers>
SlotValues<T> Walk(const std::array<int, 3>& shape, const Steps& steps, int slots, WalkMemory<T>* memory,
                   Layers* layers) {
  const size_t count = steps.size();
  size_t first_dense = 0;
  while (first_dense < count && !Flattens(steps[first_dense].layer)) ++first_dense;
  // Of what step i reads, or what the last one writes:
  const auto shape_of = [&](size_t i) { return i == 0 ? shape : steps[i - 1].layer.out; };
  const auto frame_of = [&](size_t i) { return Frame(shape_of(i), i < count ? &steps[i].layer : nullptr); };
  const auto values_of = [&](size_t i) {
    constexpr int64_t kLine = kCacheLine / sizeof(T);
    const int64_t stride = (ValuesOf(shape_of(i)) + 2 * kLine - 1) / kLine * kLine;
    return SlotValues<T>{memory->flat[i % 2].Get(stride * slots), stride};
  };

  SlotValues<T> values = values_of(first_dense);
  for (int s = 0; s < slots; ++s) {
    const auto place_of = [&](size_t i, const Frame& frame) {
      return i == first_dense ? values.Of(s) : memory->image[i % 2].Get(frame.size);
    };
    Frame from = frame_of(0);
    T* in = place_of(0, from);
    layers->Load(s, from, in);
    for (size_t i = 0; i < first_dense; ++i) {
      const Frame to = frame_of(i + 1);
      T* out = place_of(i + 1, to);
      layers->Convolve(i, s, from, in, to, out);
      from = to;
      in = out;
    }
  }
  for (size_t i = first_dense; i < count; ++i) {
    const SlotValues<T> next = values_of(i + 1);
    layers->Dense(i, values, next);
    values = next;
  }
  return values;
}

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_WALK_H_
