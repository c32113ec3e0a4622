// Share of the machine's limits that the CPU backend reaches, measured in turns on one core: layers of LargeModel and
// Model, whole forward calls, making weights (Init, Perturb) against copying them, and preparing a row of VirtualBN.
//
//   build/native/bench/forward_bench [--json] [--repeats N] [--observations FILE]
//
// A layer's work is its multiply-adds with inputs that are not zero, and the weights behind them that it must read. The
// limit that binds it is the longer one of work / peak rate of fused multiply-adds and bytes / read bandwidth. The
// second share does not count windows that equal their left neighbors, which a convolution may copy. Weights are read
// from memory (flushed from the caches before each call) or from the nearest cache that they fit into. FILE:
// observations, uint8 [*, 84, 84, 4], of which the first 8 are used; without it they are made of flat rectangles.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "call_times.h"
#include "core/philox.h"
#include "core/simd.h"
#include "layer_times.h"
#include "machine.h"

using namespace neuroevo;

namespace {

const std::pair<const char*, const char*> kNetworks[] = {
    {"large_model",
     "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
     "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias"},
    {"model",
     "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; conv 32 4 4 2 same 1.0; bias; relu; "
     "dense 256 1.0; bias; relu; dense 18 0.1; bias"}};

// Its layers are Model's.
const char kVirtualBn[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; vbn; bias; relu; conv 32 4 4 2 same 1.0; vbn; bias; relu; "
    "dense 256 1.0; vbn; bias; relu; dense 18 1.0; bias";

// An image of flat rectangles on a black and gray ground, as games have them; the four frames a little apart.
std::vector<uint8_t> Image(uint64_t seed) {
  std::vector<uint8_t> image(kImageBytes, 0);
  std::fill(image.begin() + kImageBytes / 5, image.end(), 90);
  for (uint64_t r = 0; r < 20; ++r) {
    const Philox words = PhiloxWords(seed, r);
    const int y = words.word[0] % 70, x = words.word[1] % 70, h = 3 + words.word[2] % 12, w = 3 + words.word[3] % 12;
    for (int i = y; i < y + h && i < 84; ++i) {
      for (int j = x; j < x + w && j < 80; ++j) {
        for (int c = 0; c < 4; ++c) image[(i * 84 + j + c) * 4 + c] = static_cast<uint8_t>(words.word[3] >> 8);
      }
    }
  }
  return image;
}

std::vector<uint8_t> Observations(const char* file) {
  std::vector<uint8_t> images;
  if (file == nullptr) {
    for (int i = 0; i < kImages; ++i) {
      const std::vector<uint8_t> image = Image(i);
      images.insert(images.end(), image.begin(), image.end());
    }
    return images;
  }
  images.resize(kImages * kImageBytes);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(images.data()), kImages * kImageBytes)) {
    std::fprintf(stderr, "%s holds fewer than %d observations of %d bytes\n", file, kImages, int{kImageBytes});
    std::exit(2);
  }
  return images;
}

// So many rows that one played long ago is in no cache.
int64_t RowsBeyondCaches(const Network& network) {
  return 8 + 4 * CacheSizes().l3 / (network.dimension() * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int repeats = 60;
  const char* file = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc) {
      repeats = std::max(1, std::atoi(argv[++i]));
    } else if (strcmp(argv[i], "--observations") == 0 && i + 1 < argc) {
      file = argv[++i];
    } else {
      std::fprintf(stderr, "argument '%s' is unknown, expected --json, --repeats N or --observations FILE\n", argv[i]);
      return 2;
    }
  }
  const std::vector<uint8_t> images = Observations(file);
  Limits limits;
  std::vector<LayerResult> results;
  std::vector<std::pair<std::string, Times>> forwards;
  for (const auto& [name, text] : kNetworks) {
    const Network network = Network::Parse(text);
    TimeLayers(name, network, images, repeats, &limits, &results);
    forwards.emplace_back(name, TimeForward(network, images, RowsBeyondCaches(network), repeats));
  }
  const Network virtual_bn = Network::Parse(kVirtualBn);
  forwards.emplace_back("virtual_bn", TimeForward(virtual_bn, images, RowsBeyondCaches(virtual_bn), repeats));
  FindLimits(limits, &results);
  const Network large = Network::Parse(kNetworks[0].second);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::pair<int, MakeTimes>> making = {{1, TimeMaking(large, 1, 16, repeats)}};
  if (cores > 1) making.emplace_back(cores, TimeMaking(large, cores, 16, repeats));
  std::vector<std::pair<int, PrepareTimes>> preparing;
  for (const auto& [threads, times] : making) {
    preparing.emplace_back(threads, TimePreparing(virtual_bn, images, threads, repeats));
  }

  std::printf(
      json ? "{\"float_lanes\": %d, \"limits\": {\"fma_gflops\": %.4g" : "vectors of %d floats; FMA %.4g GFLOP/s",
      kLanes, limits.Fma());
  for (const std::string& level : limits.Levels()) {
    std::printf(json ? ", \"read_%s_gb_s\": %.4g" : ", %s %.4g GB/s", level.c_str(), limits.ReadFrom(level));
  }
  std::printf(json ? "}, \"layers\": [" : "\n\n%-12s %-7s %-8s %9s %9s %12s %9s  %-5s %6s %s\n", "network", "layer",
              "weights", "us", "non-zero", "multiply-adds", "KB read", "limit", "share", "distinct");
  const char* separator = "";
  for (const LayerResult& r : results) {
    if (json) {
      std::printf(
          "%s{\"network\": \"%s\", \"layer\": \"%s\", \"weights_from\": \"%s\", \"us\": %.4g, \"non_zero\": %.4g, "
          "\"multiply_adds\": %.8g, \"distinct\": %.8g, \"bytes\": %.8g, \"limit\": \"%s\", \"share\": %.4g, "
          "\"distinct_share\": %.4g}",
          separator, r.network.c_str(), r.layer.c_str(), r.weights_from.c_str(), r.microseconds, r.non_zero,
          r.multiply_adds, r.distinct, r.bytes, r.limit.c_str(), r.share, r.distinct_share);
    } else {
      std::printf("%-12s %-7s %-8s %9.2f %8.0f%% %12.0f %9.1f  %-5s %5.0f%% %7.0f%%\n", r.network.c_str(),
                  r.layer.c_str(), r.weights_from.c_str(), r.microseconds, 100 * r.non_zero, r.multiply_adds,
                  r.bytes / 1024, r.limit.c_str(), 100 * r.share, 100 * r.distinct_share);
    }
    separator = ", ";
  }
  std::printf(json ? "], \"forward_us_a_slot\": {" : "\n");
  separator = "";
  for (const auto& [name, times] : forwards) {
    if (json) std::printf("%s\"%s\": {", separator, name.c_str());
    separator = "";
    for (const auto& [what, microseconds] : times) {
      if (json) {
        std::printf("%s\"%s\": %.4g", separator, what.c_str(), microseconds);
      } else {
        std::printf("%-12s forward, us a slot, %-40s %7.1f\n", name.c_str(), what.c_str(), microseconds);
      }
      separator = ", ";
    }
    if (json) std::printf("}");
  }
  std::printf(json ? "}, \"making\": [" : "\n");
  separator = "";
  for (const auto& [threads, ms] : making) {
    std::printf(json ? "%s{\"threads\": %d, \"copy_ms\": %.4g, \"perturb_ms\": %.4g, \"init_ms\": %.4g}"
                     : "%slarge_model, %d threads: copying %.2f ms, perturbing %.2f ms, initializing %.2f ms\n",
                separator, threads, ms.copy, ms.perturb, ms.init);
    if (json) separator = ", ";
  }
  std::printf(json ? "], \"preparing\": [" : "\n");
  separator = "";
  for (const auto& [threads, ms] : preparing) {
    std::printf(json ? "%s{\"threads\": %d, \"prepare_ms\": %.4g, \"forwards_ms\": %.4g}"
                     : "%svirtual_bn, %d threads: preparing a row %.2f ms, 128 forward calls of a slot %.2f ms\n",
                separator, threads, ms.prepare, ms.forwards);
    if (json) separator = ", ";
  }
  if (json) std::printf("]}\n");
  return 0;
}
