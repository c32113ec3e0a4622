// The CPU backend of integer networks: evaluation of the layers for the slots of a task, recomputing only values that
// have changed since the slot's last step (memory.h). Convolutions run slot by slot; dense layers are evaluated for all
// slots of a task together, which share the weight reads.
#include "population/int8/backend.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "networks/int8/rules.h"
#include "population/cpu/int8/kernels.h"
#include "population/cpu/int8/memory.h"
#include "population/cpu/int8/simd.h"
#include "population/cpu/scratch.h"

namespace neuroevo {

namespace {

// Position of a convolution output to compute.
struct Place {
  int32_t y, x;
};

struct Scratches {
  Scratch<int32_t> sums;
  Scratch<uint8_t> values, dense;
  std::vector<Int8Pixel> pixels;
  std::vector<Place> places;                    // positions of the pixels
  Int8Memory memories[Int8Backend::kMaxSlots];  // for slots without their own memory
};

// Returns the largest of n sums with their biases, at least 0.
int32_t Largest(const int32_t* sums, const int32_t* bias, int64_t n) {
  Sums most = {RawInts{}};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = Max(most, {Sums::Load(sums + i).v + Sums::Load(bias + i).v});
  int32_t largest = most.Largest();
  for (; i < n; ++i) largest = std::max(largest, sums[i] + bias[i]);
  return largest;
}

// Computes int8::Activation of n sums with their biases, in 32-bit arithmetic: sums stay below 2^31, and half a unit is
// at most 2^22.
void Activations(const int32_t* sums, const int32_t* bias, int64_t n, int shift, uint8_t* out) {
  const uint32_t below_half = shift == 0 ? 0 : (1u << (shift - 1)) - 1, odd = shift == 0 ? 0 : 1;
  const RawWords all_below_half = RawWords{} + below_half, all_odd = RawWords{} + odd;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Sums sum = Max(Sums{Sums::Load(sums + i).v + Sums::Load(bias + i).v}, Sums{RawInts{}});
    const RawWords half = all_below_half + ((RawWords)ShiftRight(sum, shift).v & all_odd);
    ShiftRight({(RawInts)((RawWords)sum.v + half)}, shift).StoreBytes(out + i);
  }
  for (; i < n; ++i) {
    const uint32_t sum = static_cast<uint32_t>(std::max(sums[i] + bias[i], 0));
    out[i] = static_cast<uint8_t>((sum + below_half + (sum >> shift & odd)) >> shift);
  }
}

int64_t NotZero(const uint8_t* values, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += values[i] != 0;
  return count;
}

int64_t Differing(const uint8_t* a, const uint8_t* b, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += a[i] != b[i];
  return count;
}

// Copies n bytes and returns whether they differed from the previous ones.
bool Take(const uint8_t* from, int64_t n, uint8_t* to) {
  uint64_t differs = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t now, before;
    memcpy(&now, from + i, sizeof(now));
    memcpy(&before, to + i, sizeof(before));
    differs |= now ^ before;
    memcpy(to + i, &now, sizeof(now));
  }
  for (; i < n; ++i) {
    differs |= from[i] ^ to[i];
    to[i] = from[i];
  }
  return differs != 0;
}

// Evaluation of one task, the slots of one row.
class Evaluation {
 public:
  Evaluation(const Int8Network& network, const char* row, int slots, float* const* outs, Int8Memory* const* memories,
             Scratches* scratches)
      : network_(network), row_(row), slots_(slots), outs_(outs), memories_(memories), scratches_(*scratches) {}

  void Run(const void* const* observations) {
    const size_t convs = memories_[0]->convs.size();
    for (int s = 0; s < slots_; ++s) {
      TakeObservation(static_cast<const uint8_t*>(observations[s]), memories_[s]);
      for (size_t i = 0; i < convs; ++i) Convolve(i, s);
    }
    for (size_t i = convs; i < network_.steps.size(); ++i) Dense(i, i - convs);
  }

 private:
  void TakeObservation(const uint8_t* observation, Int8Memory* memory) const {
    Int8Memory::Image& image = memory->images[0];
    const Frame frame = FrameOf(network_, 0);
    const auto& shape = network_.steps[0].layer.in;
    if (!memory->known) {
      frame.Fill(image.bytes.data(), [&](int64_t y, uint8_t* place) {
        memcpy(place, observation + y * frame.row_values, frame.row_values);
      });
      return;
    }
    image.changes.Reset(shape);
    for (int64_t y = 0; y < frame.height; ++y) {
      image.changes.TakeRow(y, shape[2], observation + y * frame.row_values, frame.Row(image.bytes.data(), y));
    }
  }

  // Keeps the image for the next step, which adds what will have changed.
  static void KeepImage(const Frame& frame, bool known, Int8Memory::Image* image) {
    if (!known) {
      image->before = image->bytes;
      return;
    }
    for (int64_t y = 0; y < frame.height; ++y) {
      if (!image->changes.RowChanged(y)) continue;
      memcpy(frame.Row(image->before.data(), y), frame.Row(image->bytes.data(), y), frame.row_values);
    }
  }

  void Convolve(size_t i, int s) {
    Int8Memory& memory = *memories_[s];
    const Int8Step& step = network_.steps[i];
    Int8Memory::Image& in = memory.images[i];
    const Frame from = FrameOf(network_, i), to = FrameOf(network_, i + 1);
    Int8Memory::Conv& conv = memory.convs[i];
    const int height = step.layer.out[0], width = step.layer.out[1], filters = step.layer.out[2];
    const int64_t most = int64_t{height} * width;
    if (static_cast<int64_t>(scratches_.places.size()) < most) {  // grown last, so pixels is large enough if places is
      scratches_.pixels.resize(most);
      scratches_.places.resize(most);
    }
    Int8Pixel* const pixels = scratches_.pixels.data();
    Place* const places = scratches_.places.data();
    int64_t count = 0;
    const int64_t row_step = from.pitch * step.layer.stride,
                  column_step = int64_t{step.layer.in[2]} * step.layer.stride;
    const uint8_t* bytes = in.bytes.data();
    const uint8_t* before = memory.known && Int8ConvAddsChanges() ? in.before.data() : nullptr;
    const auto add = [&](int y, int x) {
      const int64_t corner = y * row_step + x * column_step;
      pixels[count] = {bytes + corner, before == nullptr ? nullptr : before + corner,
                       &conv.sums[(int64_t{y} * width + x) * filters]};
      places[count++] = {y, x};
    };
    if (memory.known) {
      in.changes.ForOutputs(step.layer, add);
    } else {
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) add(y, x);
      }
    }
    Int8Conv(step.layer, Weights(step), from.pitch, pixels, count);
    if (Int8ConvAddsChanges()) KeepImage(from, memory.known, &in);
    const int exponent = in.exponent + Exponent(i);
    const bool other_bias = !memory.known || conv.bias.exponent != exponent;
    const int32_t* bias = Bias(step, exponent, memory.known, &conv.bias);
    if (other_bias) {
      for (int64_t p = 0; p < most; ++p) conv.largest[p] = Largest(&conv.sums[p * filters], bias, filters);
    } else {
      for (int64_t p = 0; p < count; ++p) {
        conv.largest[places[p].y * width + places[p].x] = Largest(pixels[p].sums, bias, filters);
      }
    }
    if (i + 1 == network_.steps.size()) {
      for (int64_t p = 0; p < most; ++p)
        PutOutputs(&conv.sums[p * filters], bias, filters, exponent, outs_[s] + p * filters);
      return;
    }
    int32_t largest = 0;
    for (const int32_t each : conv.largest) largest = std::max(largest, each);
    Int8Memory::Image& out = memory.images[i + 1];
    const int shift = int8::ActivationShift(largest);
    out.exponent = int8::ActivationExponent(largest, exponent, shift);
    const bool some = !other_bias && shift == conv.shift;
    conv.shift = shift;
    const auto make_row = [&](int64_t y, uint8_t* row) {
      const int32_t* sums = &conv.sums[y * width * filters];
      for (int64_t i = 0; i < width * filters; i += filters) Activations(sums + i, bias, filters, shift, row + i);
    };
    out.changes.Reset(step.layer.out);
    if (!memory.known) {
      to.Fill(out.bytes.data(), make_row);
    } else if (some) {
      uint8_t* next = scratches_.values.Get(filters);
      for (int64_t p = 0; p < count; ++p) {
        const auto [y, x] = places[p];
        Activations(pixels[p].sums, bias, filters, shift, next);
        if (Take(next, filters, to.Row(out.bytes.data(), y) + x * filters)) out.changes.Mark(y, x);
      }
    } else {
      uint8_t* row = scratches_.values.Get(to.row_values);
      for (int64_t y = 0; y < height; ++y) {
        make_row(y, row);
        out.changes.TakeRow(y, filters, row, to.Row(out.bytes.data(), y));
      }
    }
  }

  // Runs step i, which is dense layer d.
  void Dense(size_t i, size_t d) {
    const Int8Step& step = network_.steps[i];
    const auto in_of = [&](int s) {
      const Int8Memory& memory = *memories_[s];
      return d == 0 ? memory.images.back().bytes.data() : memory.dense[d - 1].out.data();
    };
    const auto exponent_of = [&](int s) {
      const Int8Memory& memory = *memories_[s];
      return d == 0 ? memory.images.back().exponent : memory.dense[d - 1].out_exponent;
    };
    Sum(step, d, in_of);
    for (int s = 0; s < slots_; ++s) {
      Int8Memory::Dense& dense = memories_[s]->dense[d];
      memcpy(dense.in.data(), in_of(s), step.inputs);
      const int exponent = exponent_of(s) + Exponent(i);
      const int32_t* bias = Bias(step, exponent, memories_[s]->known, &dense.bias);
      if (i + 1 == network_.steps.size()) {
        PutOutputs(dense.sums.data(), bias, step.outputs, exponent, outs_[s]);
        continue;
      }
      const int32_t largest = Largest(dense.sums.data(), bias, step.outputs);
      const int shift = int8::ActivationShift(largest);
      dense.out_exponent = int8::ActivationExponent(largest, exponent, shift);
      Activations(dense.sums.data(), bias, step.outputs, shift, dense.out.data());
    }
  }

  // Computes the sums of a dense layer for all slots: from scratch, or, if fewer inputs have changed than are nonzero,
  // by adding the products of the differences. Increases and decreases are added separately so that they fit into
  // bytes.
  template <class In>
  void Sum(const Int8Step& step, size_t d, const In& in_of) {
    int64_t there = 0, changed = 0;
    bool known = true;
    for (int s = 0; s < slots_; ++s) {
      const Int8Memory::Dense& dense = memories_[s]->dense[d];
      known = known && memories_[s]->known;
      if (!known) break;
      there += NotZero(in_of(s), step.inputs);
      changed += Differing(in_of(s), dense.in.data(), step.inputs);
    }
    const int64_t stride = Int8DenseStride(step.outputs);
    int32_t* sums = scratches_.sums.Get(stride * slots_);
    uint8_t* scratch = scratches_.dense.Get(Int8DenseScratchBytes(step.inputs, slots_));
    if (!known || changed >= there) {
      const int64_t in_stride = (step.inputs + kCacheLine - 1) / kCacheLine * kCacheLine;
      uint8_t* in = scratches_.values.Get(in_stride * slots_);
      for (int s = 0; s < slots_; ++s) memcpy(in + s * in_stride, in_of(s), step.inputs);
      Int8Dense(step.inputs, step.outputs, Weights(step), slots_, in, in_stride, sums, stride, scratch);
      for (int s = 0; s < slots_; ++s) std::copy_n(sums + s * stride, step.outputs, memories_[s]->dense[d].sums.data());
      return;
    }
    for (int s = 0; s < slots_; ++s) {
      const uint8_t *now = in_of(s), *before = memories_[s]->dense[d].in.data();
      int32_t* to = memories_[s]->dense[d].sums.data();
      Int8DenseExcess(step.inputs, step.outputs, Weights(step), now, before, sums, scratch);
      for (int64_t u = 0; u < step.outputs; ++u) to[u] += sums[u];
      Int8DenseExcess(step.inputs, step.outputs, Weights(step), before, now, sums, scratch);
      for (int64_t u = 0; u < step.outputs; ++u) to[u] -= sums[u];
    }
  }

  const int8_t* Weights(const Int8Step& step) const {
    return reinterpret_cast<const int8_t*>(row_ + step.weights_place);
  }
  int Exponent(size_t i) const { return reinterpret_cast<const int32_t*>(row_)[i]; }

  // Returns a step's biases at the scale of its sums.
  const int32_t* Bias(const Int8Step& step, int exponent, bool known, Int8Memory::Bias* bias) const {
    if (known && bias->exponent == exponent) return bias->values.data();
    bias->exponent = exponent;
    const float* values = reinterpret_cast<const float*>(row_ + step.bias_place);
    for (int64_t u = 0; u < step.outputs; ++u) {
      bias->values[u] = step.has_bias ? int8::QuantizedBias(values[u], exponent) : 0;
    }
    return bias->values.data();
  }

  void PutOutputs(const int32_t* sums, const int32_t* bias, int64_t n, int exponent, float* out) const {
    for (int64_t u = 0; u < n; ++u) {
      const int32_t sum = sums[u] + bias[u];
      out[u] = int8::Output(network_.relu_at_the_end ? std::max(sum, 0) : sum, exponent);
    }
  }

  const Int8Network& network_;
  const char* row_;
  int slots_;
  float* const* outs_;
  Int8Memory* const* memories_;
  Scratches& scratches_;
};

class CpuBackend : public Int8Backend {
 public:
  int64_t ConvBytes(const Layer& layer) const override { return Int8ConvBytes(layer); }
  void ArrangeConv(const Layer& layer, const int8_t* plain, int8_t* arranged) const override {
    ArrangeInt8Conv(layer, plain, arranged);
  }
  std::unique_ptr<SlotMemory> MakeSlotMemory() const override { return std::make_unique<Int8Memory>(); }

  void Evaluate(const Int8Network& network, const char* row, int slots, const void* const* observations,
                SlotMemory* const* memories, float* const* outs) const override {
    static_assert(kMaxSlots <= kMaxInt8DenseSlots, "");
    thread_local Scratches scratches;
    Int8Memory* own[kMaxSlots] = {};
    for (int s = 0; s < slots; ++s) {
      own[s] = memories[s] == nullptr ? &scratches.memories[s] : static_cast<Int8Memory*>(memories[s]);
      if (!own[s]->known) own[s]->Begin(network);
    }
    Evaluation(network, row, slots, outs, own, &scratches).Run(observations);
  }
};

}  // namespace

std::unique_ptr<Int8Backend> MakeInt8CpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace neuroevo
