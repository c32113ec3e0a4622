#include "layer_times.h"

#include "core/noise.h"
#include "core/simd.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

namespace {

void Flush(const void* data, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_ia32_clflush(static_cast<const char*>(data) + i);
  __builtin_ia32_mfence();
}

// A layer with its inputs, as the kernel takes them: of a convolution padded, of a dense layer in a row.
struct LayerCase {
  const Layer& layer;
  Epilogue epilogue;
  bool flat;  // as for CpuConv
  int64_t pitch = 0;
  std::vector<std::vector<float>> inputs;  // [kImages]
  std::vector<float> out = std::vector<float>(1 << 18);
  ConvMarks marks;
  ConvScratch conv_scratch;
  std::vector<int32_t> dense_list;

  LayerCase(const Layer& l, const Epilogue& e, bool f, const std::vector<std::vector<float>>& values)
      : layer(l), epilogue(e), flat(f) {
    const auto [height, width, channels] = layer.in;
    if (layer.kind == Layer::Kind::kDense) {
      inputs = values;
      for (auto& input : inputs) input.resize(input.size() + kLanes);
      dense_list.resize(DenseListSize(int64_t{height} * width * channels));
      return;
    }
    const int rows = (layer.out[0] - 1) * layer.stride + layer.kernel_h;
    const int columns = (layer.out[1] - 1) * layer.stride + layer.kernel_w;
    pitch = int64_t{columns} * channels;
    for (const std::vector<float>& value : values) {
      inputs.emplace_back(rows * pitch + kLanes);
      for (int y = 0; y < std::min(height, rows - layer.pad_top); ++y) {
        std::copy_n(value.begin() + int64_t{y} * width * channels, std::min(width, columns - layer.pad_left) * channels,
                    inputs.back().begin() + (y + layer.pad_top) * pitch + layer.pad_left * channels);
      }
    }
  }

  void Run(const float* weights, int image) {
    const float* in = inputs[image].data();
    if (layer.kind == Layer::Kind::kConv) {
      marks.Set(layer, weights, in, pitch, nullptr);
      CpuConv(layer, weights, epilogue, in, pitch, marks, nullptr, flat, out.data(),
              int64_t{layer.out[1]} * layer.out[2], &conv_scratch);
    } else {
      const int64_t size = int64_t{1} * layer.in[0] * layer.in[1] * layer.in[2];
      CpuDense(size, layer.out[2], weights, &epilogue, 1, in, size, out.data(), 0, dense_list.data(), nullptr);
    }
  }

  // Taps with an input that is not zero, mean over the images, of Taps(): all, and those of windows that differ from
  // their left neighbors.
  struct Counts {
    double all = 0, distinct = 0;
  };
  Counts NonZeroTaps() const {
    Counts mean;
    for (const std::vector<float>& in : inputs) {
      const Counts counts = layer.kind == Layer::Kind::kConv ? NonZeroInWindows(in) : Counts{NonZero(in), NonZero(in)};
      mean.all += counts.all / kImages;
      mean.distinct += counts.distinct / kImages;
    }
    return mean;
  }
  static double NonZero(const std::vector<float>& values) {
    return static_cast<double>(std::count_if(values.begin(), values.end(), [](float x) { return x != 0; }));
  }
  Counts NonZeroInWindows(const std::vector<float>& in) const {
    Counts counts;
    for (int y = 0; y < layer.out[0]; ++y) {
      std::vector<float> left;
      for (int x = 0; x < layer.out[1]; ++x) {
        std::vector<float> window;
        for (int kh = 0; kh < layer.kernel_h; ++kh) {
          const float* row = in.data() + (y * layer.stride + kh) * pitch + x * layer.stride * layer.in[2];
          window.insert(window.end(), row, row + layer.kernel_w * layer.in[2]);
        }
        counts.all += NonZero(window);
        if (window != left) counts.distinct += NonZero(window);
        left.swap(window);
      }
    }
    return counts;
  }
  double Taps() const {
    if (layer.kind == Layer::Kind::kDense) return 1.0 * layer.in[0] * layer.in[1] * layer.in[2];
    return 1.0 * layer.out[0] * layer.out[1] * layer.kernel_h * layer.kernel_w * layer.in[2];
  }
};

}  // namespace

void TimeLayers(const char* name, const Network& network, const std::vector<uint8_t>& images, int repeats,
                Limits* limits, std::vector<LayerResult>* results) {
  Buffer theta((network.dimension() + 64) * sizeof(float));
  for (const Layer& layer : network.layers()) {
    if (layer.init_scale == 0) continue;
    AddNoise(1, layer.offset, layer.weights, layer.init_scale, nullptr, theta.floats() + layer.offset);
  }
  std::vector<std::vector<float>> values(kImages);
  for (int i = 0; i < kImages; ++i) {
    for (int64_t j = 0; j < kImageBytes; ++j) values[i].push_back(images[i * kImageBytes + j] * (1.0f / 255));
  }
  int number[2] = {};
  const std::vector<Layer>& layers = network.layers();
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const bool conv = layer.kind == Layer::Kind::kConv;
    if (!conv && layer.kind != Layer::Kind::kDense) continue;
    Epilogue epilogue;
    epilogue.bias = theta.floats() + layers[l + 1].offset;
    epilogue.relu = l + 2 < layers.size() && layers[l + 2].kind == Layer::Kind::kRelu;
    LayerCase run(layer, epilogue, number[1] == 0, values);
    const float* weights = theta.floats() + layer.offset;
    const int64_t bytes = layer.weights * sizeof(float);
    std::vector<double> from_memory, from_cache;
    for (int i = 0; i < repeats; ++i) {
      if (i % 4 == 0) limits->Slice();
      const int image = i % kImages;
      run.Run(weights, image);
      from_cache.push_back(Microseconds([&] { run.Run(weights, image); }));
      Flush(weights, bytes);
      from_memory.push_back(Microseconds([&] { run.Run(weights, image); }));
    }
    const LayerCase::Counts taps = run.NonZeroTaps();
    const double non_zero = taps.all / run.Taps(), work = taps.all * layer.out[2],
                 distinct = taps.distinct * layer.out[2];
    const double read = conv ? bytes : work * sizeof(float);
    const std::string title = (conv ? "conv" : "dense") + std::to_string(++number[conv]);
    results->push_back({name, title, limits->LevelOf(bytes), Median(from_cache), non_zero, work, distinct, read});
    results->push_back({name, title, limits->Memory(), Median(from_memory), non_zero, work, distinct, read});
    for (int i = 0; i < kImages; ++i) {
      run.Run(weights, i);
      values[i].assign(run.out.begin(), run.out.begin() + int64_t{1} * layer.out[0] * layer.out[1] * layer.out[2]);
    }
  }
}

void FindLimits(const Limits& limits, std::vector<LayerResult>* results) {
  for (LayerResult& result : *results) {
    const auto arithmetic = [&](double multiply_adds) { return 2 * multiply_adds / limits.Fma() * 1e-3; };  // us
    const double reading = result.bytes / limits.ReadFrom(result.weights_from) * 1e-3;
    result.limit = arithmetic(result.multiply_adds) > reading ? "FMA" : "read";
    result.share = std::max(arithmetic(result.multiply_adds), reading) / result.microseconds;
    result.distinct_share = std::max(arithmetic(result.distinct), reading) / result.microseconds;
  }
}

}  // namespace neuroevo
