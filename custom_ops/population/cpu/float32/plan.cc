#include "population/cpu/float32/plan.h"

#include <algorithm>
#include <cstring>

#include "population/cpu/float32/elementwise.h"
#include "population/cpu/scratch.h"

namespace neuroevo {

namespace {

// Flat activations of all slots, with a cache line of slack each.
struct SlotValues {
  float* first;
  int64_t stride;  // values from slot to slot

  float* Of(int s) const { return first + s * stride; }
};

struct Scratches {
  Float32Memory memory;    // for slots without their own memory
  Scratch<float> flat[2];  // layers alternately read one and write the other
  Scratch<float> before;
  std::vector<int64_t> places;
  ConvScratch conv;
  Scratch<int32_t> dense_list;
  Scratch<float> graph;
};

bool Flattens(const Layer& layer) {
  return layer.kind == Layer::Kind::kDense || layer.kind == Layer::Kind::kRecall || layer.kind == Layer::Kind::kCell ||
         layer.kind == Layer::Kind::kGraph;
}

}  // namespace

Epilogue CpuPlan::Step::EpilogueFor(const RowWeights& row) const {
  Epilogue epilogue;
  if (layer.rank > 0 && row.factor != 0) {
    epilogue.a = row.own + layer.factors;
    epilogue.b = epilogue.a + layer.rank * layer.inputs();
    epilogue.factor = row.factor;
    epilogue.rank = layer.rank;
  }
  if (vbn != nullptr) {
    epilogue.means = row.own + vbn->statistics;
    epilogue.factors = epilogue.means + vbn->out[2];
  }
  if (bias != nullptr) epilogue.bias = row.own + bias->offset;
  epilogue.relu = relu;
  return epilogue;
}

CpuPlan::CpuPlan(DType input_dtype, const std::array<int, 3>& shape, const Layer* begin, const Layer* end)
    : input_dtype_(input_dtype), shape_(shape), outputs_(ValuesOf(begin < end ? end[-1].out : shape)) {
  for (const Layer* layer = begin; layer < end; ++layer) {
    const bool sums = layer->kind == Layer::Kind::kConv || layer->kind == Layer::Kind::kDense;
    if (!sums && !layer->pool() && !Flattens(*layer)) {
      (steps_.empty() ? first_ : steps_.back().then).push_back(layer);
      continue;
    }
    if (!sums) {
      steps_.push_back(Step{*layer, nullptr, nullptr, false, {}});
      continue;
    }
    const auto take = [&](Layer::Kind kind) { return layer + 1 < end && layer[1].kind == kind ? ++layer : nullptr; };
    // Braced initialization guarantees this order of evaluation.
    steps_.push_back(
        Step{*layer, take(Layer::Kind::kVbn), take(Layer::Kind::kBias), take(Layer::Kind::kRelu) != nullptr, {}});
  }
  for (size_t i = 0; i == 0 || (i <= steps_.size() && !Flattens(steps_[i - 1].layer)); ++i) {
    frames_.emplace_back(i == 0 ? shape : steps_[i - 1].layer.out, i < steps_.size() ? &steps_[i].layer : nullptr);
  }
}

// Evaluation of the plan's layers with the weights of each slot.
struct CpuPlan::Layers {
  const CpuPlan& plan;
  const RowWeights* weights;
  int slots;
  const void* const* inputs;
  float* const* states;
  Scratches* scratches;

  // Loads the input of slot s into the first image.
  void Load(int s, Float32Memory* memory) const {
    const Frame& frame = plan.frames_[0];
    Float32Memory::Image& image = memory->images[0];
    float* out = image.values.Get(frame.size);
    const char* input = static_cast<const char*>(inputs[s]);
    const int64_t row_bytes = frame.row_values * static_cast<int64_t>(SizeOf(plan.input_dtype_));
    const auto load_row = [&](int64_t y, float* place) {
      const char* values = input + y * row_bytes;
      if (plan.input_dtype_ == DType::kUint8) {
        const uint8_t* bytes = reinterpret_cast<const uint8_t*>(values);
        for (int64_t i = 0; i < frame.row_values; ++i) place[i] = static_cast<float>(bytes[i]) * (1.0f / 255);
      } else {
        memcpy(place, values, row_bytes);
      }
      Elementwise(plan.first_, weights[s].own, frame.row_values, place);
    };
    image.all_changed = !memory->known;
    if (image.all_changed) {
      memory->dense.ends.clear();
      if (memory != &scratches->memory) memory->observation.assign(input, input + frame.height * row_bytes);
      frame.Fill(out, load_row);
      return;
    }
    image.changes.Reset(plan.shape_);
    const int pixel_bytes = static_cast<int>(row_bytes / plan.shape_[1]);
    for (int64_t y = 0; y < frame.height; ++y) {
      image.changes.TakeRow(y, pixel_bytes, input + y * row_bytes, memory->observation.data() + y * row_bytes);
      if (image.changes.RowChanged(y)) load_row(y, frame.Row(out, y));
    }
  }

  // Runs step i, a convolution or a pool, for slot s, from one image to the next.
  void Convolve(int s, size_t i, Float32Memory* memory) const {
    const Step& step = plan.steps_[i];
    const RowWeights& row = weights[s];
    const Frame &from = plan.frames_[i], &to = plan.frames_[i + 1];
    Float32Memory::Image &image = memory->images[i], &next = memory->images[i + 1];
    const float* in = image.values.Get(from.size);
    float* out = next.values.Get(to.size);
    if (!step.layer.pool()) {
      const Changes* changes = image.all_changed ? nullptr : &image.changes;
      image.marks.Set(step.layer, row.matrices + step.layer.offset, in, from.pitch, changes);
      if (changes != nullptr && step.then.empty()) {
        return ConvolveChanged(step, row, in, from, &image, to, out, &next);
      }
    }
    next.all_changed = true;
    to.ZeroBorder(out);
    if (step.layer.pool()) {
      CpuPool(step.layer, in, from.pitch, to.Row(out, 0), to.pitch);
    } else {
      const bool flat = i == 0;  // observations have flat areas, activations hardly ever
      CpuConv(step.layer, row.matrices + step.layer.offset, step.EpilogueFor(row), in, from.pitch, image.marks, nullptr,
              flat, to.Row(out, 0), to.pitch, &scratches->conv);
    }
    for (int64_t y = 0; y < to.height; ++y) Elementwise(step.then, row.own, to.row_values, to.Row(out, y));
  }

  // Runs a convolution of an image of which only some positions have changed.
  void ConvolveChanged(const Step& step, const RowWeights& row, const float* in, const Frame& from,
                       Float32Memory::Image* image, const Frame& to, float* out, Float32Memory::Image* next) const {
    const int64_t width = step.layer.out[1], filters = step.layer.out[2];
    std::vector<int64_t>& places = scratches->places;
    places.clear();
    image->changes.ForOutputs(step.layer, [&](int64_t y, int64_t x) { places.push_back(y * width + x); });
    const auto at = [&](int64_t place) { return to.Row(out, place / width) + place % width * filters; };
    float* before = scratches->before.Get(static_cast<int64_t>(places.size()) * filters);
    for (size_t p = 0; p < places.size(); ++p) memcpy(before + p * filters, at(places[p]), filters * sizeof(float));
    CpuConv(step.layer, row.matrices + step.layer.offset, step.EpilogueFor(row), in, from.pitch, image->marks, &places,
            false, to.Row(out, 0), to.pitch, &scratches->conv);
    next->all_changed = false;
    next->changes.Reset(step.layer.out);
    for (size_t p = 0; p < places.size(); ++p) {
      if (memcmp(before + p * filters, at(places[p]), filters * sizeof(float)) != 0) {
        next->changes.Mark(places[p] / width, places[p] % width);
      }
    }
  }

  // Runs step i, which flattens its input, for all slots. memory: of a single slot, for the first such step; or null.
  void Dense(size_t i, const SlotValues& in, const SlotValues& out, DenseMemory* memory) const {
    const Step& step = plan.steps_[i];
    const int64_t inputs = ValuesOf(step.layer.in);
    const int units = step.layer.out[2];
    if (step.layer.kind == Layer::Kind::kDense) {
      Epilogue epilogues[kMaxDenseSlots];
      for (int s = 0; s < slots; ++s) epilogues[s] = step.EpilogueFor(weights[s]);
      CpuDense(inputs, units, weights[0].matrices + step.layer.offset, epilogues, slots, in.first, in.stride, out.first,
               out.stride, scratches->dense_list.Get(DenseListSize(inputs)), memory);
    } else if (step.layer.kind == Layer::Kind::kRecall) {
      for (int s = 0; s < slots; ++s) {
        float* recalled = std::copy_n(in.Of(s), inputs, out.Of(s));
        std::copy_n(states[s] + step.layer.state, units - inputs, recalled);
      }
    } else if (step.layer.kind == Layer::Kind::kGraph) {
      float* memory = scratches->graph.Get(GraphMemorySize(step.layer));
      const auto run = [&](int first, int count) {  // slots with the same weights: one member, or all slots of a row
        CpuGraph(step.layer, weights[first].own + step.layer.offset, count, in.Of(first), in.stride, out.Of(first),
                 out.stride, memory);
      };
      for (int first = 0, s = 1; s <= slots; ++s) {
        if (s < slots && weights[s].own == weights[first].own) continue;
        run(first, s - first);
        first = s;
      }
    } else {
      for (int s = 0; s < slots; ++s) CpuCell(units, in.Of(s), states[s] + step.layer.state, out.Of(s));
    }
    for (int s = 0; s < slots; ++s) Elementwise(step.then, weights[s].own, units, out.Of(s));
  }
};

void CpuPlan::Run(const RowWeights* weights, int slots, const void* const* inputs, float* const* states,
                  Float32Memory* const* memories, float* const* outs) const {
  thread_local Scratches scratches;
  const Layers layers{*this, weights, slots, inputs, states, &scratches};
  const size_t count = steps_.size(), convs = frames_.size() - 1;
  const auto values_of = [&](size_t i) {  // input of step i, or output of the last step
    constexpr int64_t kLine = kCacheLine / sizeof(float);
    const int64_t n = ValuesOf(i == 0 ? shape_ : steps_[i - 1].layer.out);
    const int64_t stride = (n + 2 * kLine - 1) / kLine * kLine;
    return SlotValues{scratches.flat[i % 2].Get(stride * slots), stride};
  };
  SlotValues values = values_of(convs);
  for (int s = 0; s < slots; ++s) {
    Float32Memory* memory = memories == nullptr || memories[s] == nullptr ? &scratches.memory : memories[s];
    memory->images.resize(std::max(memory->images.size(), frames_.size()));
    layers.Load(s, memory);
    for (size_t i = 0; i < convs; ++i) layers.Convolve(s, i, memory);
    const Frame& last = frames_.back();
    memcpy(values.Of(s), memory->images[convs].values.Get(last.size), last.size * sizeof(float));
  }
  const bool keeps = slots == 1 && memories != nullptr && memories[0] != nullptr;
  for (size_t i = convs; i < count; ++i) {
    const SlotValues next = values_of(i + 1);
    layers.Dense(i, values, next, keeps && i == convs ? &memories[0]->dense : nullptr);
    values = next;
  }
  for (int s = 0; s < slots; ++s) memcpy(outs[s], values.Of(s), outputs_ * sizeof(float));
}

}  // namespace neuroevo
