// Times the CPU backend on one core: layers and whole forward passes of LargeModel, with weights from memory and from
// cache, and Perturb against memcpy. Prints milliseconds: the smallest and the median of many repeats.
//
//   build/.../population_bench [repeats]        (or compiled by hand, with the flags of CMakeLists.txt)
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/noise.h"
#include "core/philox.h"
#include "core/simd.h"
#include "population/cpu_kernels.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

int repeats = 400;

void Time(const std::string& what, double per, const std::function<void(int)>& run) {
  std::vector<double> ms;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(i);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / per);
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%-64s min %7.3f  median %7.3f ms\n", what.c_str(), ms[0], ms[ms.size() / 2]);
}

void Wait(const std::function<void(Done)>& call) {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  call([&](std::exception_ptr) {
    std::lock_guard<std::mutex> lock(mutex);
    over = true;
    ended.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return over; });
}

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";

// An image of flat rectangles, as games have them: 84 x 84 x 4, the four channels a little apart.
std::vector<uint8_t> Image(uint64_t seed) {
  std::vector<uint8_t> image(84 * 84 * 4, 40);
  for (uint64_t r = 0; r < 30; ++r) {
    const Philox words = PhiloxWords(seed, r);
    const int y = words.word[0] % 70, x = words.word[1] % 70, h = 4 + words.word[2] % 14, w = 4 + words.word[3] % 14;
    for (int i = y; i < y + h && i < 84; ++i) {
      for (int j = x; j < x + w && j < 80; ++j) {
        for (int c = 0; c < 4; ++c) image[(i * 84 + j + c) * 4 + c] = static_cast<uint8_t>(words.word[3] >> 8);
      }
    }
  }
  return image;
}

void TimeLayers(const Network& network) {
  std::vector<float> theta(network.dimension() + 64), in(1 << 18), out(1 << 18), scratch(1 << 18);
  AddNoise(1, 0, network.dimension(), 0.05f, nullptr, theta.data());
  FillNoise(2, 0, static_cast<int64_t>(in.size()), in.data());
  for (float& value : in) value = value > 0 ? value : 0;  // half of the inputs are zero
  for (const Layer& layer : network.layers()) {
    const auto& [h, w, c] = layer.in;
    Epilogue epilogue;
    epilogue.relu = true;
    if (layer.kind == Layer::Kind::kConv) {
      const int64_t pitch = ((layer.out[1] - 1) * layer.stride + layer.kernel_w) * c;
      const double macs = double(layer.weights) * layer.out[0] * layer.out[1];
      Time("conv " + std::to_string(macs * 1e-6) + "M multiply-adds, weights in cache", 1, [&](int) {
        CpuConv(layer, theta.data() + layer.offset, epilogue, in.data(), pitch, out.data(),
                layer.out[1] * layer.out[2]);
      });
    } else if (layer.kind == Layer::Kind::kDense) {
      const int64_t inputs = int64_t{1} * h * w * c, stride = inputs + 64;
      for (int slots : {1, 2, 4, 8}) {
        Time("dense " + std::to_string(inputs) + " -> " + std::to_string(layer.out[2]) + ", per slot of " +
                 std::to_string(slots) + ", half the inputs 0",
             slots, [&](int) {
               CpuDense(inputs, layer.out[2], theta.data() + layer.offset, epilogue, slots, in.data(), stride,
                        out.data(), 1024, scratch.data());
             });
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) repeats = std::atoi(argv[1]);
  const Network network = Network::Parse(kLargeModel);
  const int64_t kRows = 64, d = network.dimension();
  std::printf("vectors of %d floats, LargeModel, D = %lld\n", kLanes, static_cast<long long>(d));

  TimeLayers(network);

  auto population = Population::Make("cpu", {network}, kRows, std::make_shared<ThreadPool>(1));
  std::vector<int64_t> rows(kRows);
  std::vector<uint64_t> seeds(kRows);
  for (int64_t i = 0; i < kRows; ++i) seeds[i] = rows[i] = i;
  Wait([&](Done done) { population->Init(rows, std::vector<int32_t>(kRows, 0), seeds, done); });
  std::vector<uint8_t> images;
  for (int i = 0; i < 8; ++i) {
    const std::vector<uint8_t> image = Image(i);
    images.insert(images.end(), image.begin(), image.end());
  }
  std::vector<float> out(8 * 18);
  const auto forward = [&](std::vector<int64_t> call) {
    Wait([&](Done done) { population->Forward(std::move(call), images.data(), out.data(), done); });
  };
  Time("forward, 1 slot, cycling over 64 rows", 1, [&](int i) { forward({i % kRows}); });
  Time("forward, 1 slot, cycling over 2 rows", 1, [&](int i) { forward({i % 2}); });
  Time("forward, 1 slot, always the same row", 1, [&](int) { forward({5}); });
  Time("forward, 8 slots of different rows, per slot", 8, [&](int i) {
    std::vector<int64_t> call(8);
    for (int k = 0; k < 8; ++k) call[k] = (i * 8 + k) % kRows;
    forward(call);
  });
  Time("forward, 8 slots of one row, cycling over 64 rows, per slot", 8,
       [&](int i) { forward(std::vector<int64_t>(8, i % kRows)); });

  std::vector<float> a(d), b(d);
  FillNoise(3, 0, d, a.data());
  Time("memcpy of one theta", 1, [&](int) { memcpy(b.data(), a.data(), d * sizeof(float)); });
  Time("FillNoise of one theta", 1, [&](int i) { FillNoise(i, 0, d, b.data()); });
  Time("AddNoise, one theta to another", 1, [&](int i) { AddNoise(i, 0, d, 0.002f, a.data(), b.data()); });
  Time("Perturb, one link, cycling over 64 rows", 1, [&](int i) {
    Wait([&](Done done) { population->Perturb({(i + 32) % kRows}, {i % kRows}, {seeds[i % kRows]}, {0.002f}, done); });
  });
  Time("Perturb, a chain of 8, per link", 8, [&](int i) {
    const int64_t dst = (i + 32) % kRows;
    std::vector<int64_t> to(8, dst), from(8, dst);
    from[0] = i % kRows;
    std::vector<uint64_t> s(8, 77);
    Wait([&](Done done) { population->Perturb(to, from, s, std::vector<float>(8, 0.002f), done); });
  });
  return 0;
}
