// Conversion of the sums between layers of integer networks, and of observations, to bytes. Memory-bound, 5 bytes per
// value.
#include "gpu/runtime.h"
#include "population/cuda/int8/kernels.h"
#include "population/cuda/int8/sums.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWords = 4;  // per thread

// A thread of a block handles words first_word + i * kThreads of its position, i < kWords.
struct Place {
  int64_t position, first_word;
};
__device__ inline Place PlaceOf(int64_t words, int64_t first_position) {
  const unsigned tiles = static_cast<unsigned>((words + kThreads * kWords - 1) / (kThreads * kWords));
  return {first_position + blockIdx.x / tiles, int64_t{blockIdx.x % tiles} * (kThreads * kWords) + threadIdx.x};
}
// Launches a kernel, whose last argument is the first position, with blocks laid out as described at Place.
template <class Kernel, class... Args>
void LaunchWords(Kernel kernel, int64_t words, int64_t count, device::Stream stream, Args... args) {
  const int64_t tiles = (words + kThreads * kWords - 1) / (kThreads * kWords);
  ForGrids(count, tiles, [&](int64_t first, unsigned blocks) {
    Launch(kernel, dim3(blocks), dim3(kThreads), 0, stream, args..., first);
  });
}

__device__ inline int ShiftOf(int32_t largest) {
  // Same result as int8::ActivationShift, but skips the shifts that leave more than 8 bits.
  int shift = max(0, 24 - __clz(largest));
  while (int8::RoundShift(static_cast<uint32_t>(largest), shift) > int8::kMaxActivation) ++shift;
  return shift;
}

__global__ void Int8Activate(Int8Layer layer, Int8Call call, uint32_t* bytes, int32_t* exponents,
                             int64_t first_position) {
  const int64_t words = layer.out_words();
  const int64_t sum_words = int64_t{layer.pixels} * (layer.padded_outputs() / 4);  // followed by zeros
  const Place place = PlaceOf(words, first_position);
  const int4* sums = reinterpret_cast<const int4*>(call.sums) + place.position * words;
  int4 loaded[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int64_t word = place.first_word + i * kThreads;
    loaded[i] = make_int4(0, 0, 0, 0);
    if (word < sum_words) loaded[i] = sums[word];
  }
  const int32_t largest = call.largest[place.position];
  const int shift = ShiftOf(largest);
  if (place.first_word == 0) {
    exponents[place.position] = int8::ActivationExponent(largest, ExponentOf(layer, call, place.position), shift);
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int64_t word = place.first_word + i * kThreads;
    if (word >= words) break;
    bytes[place.position * words + word] =
        int8::Activation(loaded[i].x, shift) | uint32_t{int8::Activation(loaded[i].y, shift)} << 8 |
        uint32_t{int8::Activation(loaded[i].z, shift)} << 16 | uint32_t{int8::Activation(loaded[i].w, shift)} << 24;
  }
}

__global__ void Int8Pad(Int8Layer layer, const int32_t* slots, const uint8_t* observations, int channels,
                        uint32_t* padded, int64_t first_position) {
  const int64_t words = layer.input_words();
  const int pixels = layer.in_height * layer.in_width;
  const Place place = PlaceOf(words, first_position);
  const uint8_t* observation = observations + slots[place.position] * (int64_t{pixels} * channels);
  for (int i = 0; i < kWords; ++i) {
    const int64_t word = place.first_word + i * kThreads;
    if (word >= words) return;
    const int pixel = static_cast<int>(word / layer.in_words);
    const int channel = static_cast<int>(word - int64_t{pixel} * layer.in_words) * 4;
    uint32_t bytes = 0;
    for (int c = 0; c < 4 && pixel < pixels && channel + c < channels; ++c) {
      bytes |= uint32_t{observation[int64_t{pixel} * channels + channel + c]} << (8 * c);
    }
    padded[place.position * words + word] = bytes;
  }
}

}  // namespace

void MakeActivations(const Int8Layer& layer, const Int8Call& call, uint32_t* bytes, int32_t* exponents, int64_t count,
                     device::Stream stream) {
  LaunchWords(Int8Activate, layer.out_words(), count, stream, layer, call, bytes, exponents);
}

void PadObservations(const Int8Layer& layer, const int32_t* slots, const uint8_t* observations, int channels,
                     uint32_t* words, int64_t count, device::Stream stream) {
  LaunchWords(Int8Pad, layer.input_words(), count, stream, layer, slots, observations, channels, words);
}

}  // namespace neuroevo::cuda
