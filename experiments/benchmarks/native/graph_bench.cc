// A graph layer compared with a dense network of as many products and units, and with a loop over the edges of one
// network outside of any population: nanoseconds per observation on one thread, medians of measurements in turns.
//
//   build/native/bench/graph_bench [--json] [--repeats N]
//
// A population evaluates `rows` networks with `slots` observations each in one call; the loop has no calls, checks or
// copies, so the difference is an upper bound of the savings of a specialized network class.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "core/portable_math.h"
#include "machine.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

// `inputs` inputs, all connected to `hidden` units, all of which are connected to two outputs.
struct Size {
  int inputs, hidden;

  int edges() const { return hidden * (inputs + 2); }
  std::string graph() const {
    std::string text = Concat("input float32 ", inputs, "; graph ", hidden + 2, " 2 1");
    for (int to = inputs; to < inputs + hidden + 2; ++to) {
      const bool output = to >= inputs + hidden;
      for (int from = output ? inputs : 0; from < inputs + (output ? hidden : 0); ++from) {
        text += Concat(" ", from, ">", to);
      }
    }
    return text;
  }
  std::string dense() const {
    return Concat("input float32 ", inputs, "; dense ", hidden, " 1; bias; tanh; dense 2 1; bias");
  }
};

// Nanoseconds per observation of calls of Population::Forward.
std::function<double()> Calls(const std::string& text, int rows, int slots) {
  std::shared_ptr<Population> population =
      Population::Make("cpu", {Network::Parse(text)}, rows, std::make_shared<ThreadPool>(1));
  std::vector<int64_t> all, places;
  std::vector<uint64_t> seeds;
  for (int row = 0; row < rows; ++row) {
    all.push_back(row);
    seeds.push_back(row);
    places.insert(places.end(), slots, row);
  }
  population->Init(all, std::vector<int32_t>(rows), seeds);
  std::vector<float> seen(places.size() * population->networks()[0].input_size()), out(places.size() * 2);
  FillNoise(1, 0, static_cast<int64_t>(seen.size()), seen.data());
  return [=]() mutable {
    constexpr int kCalls = 50;
    const double us = Microseconds([&] {
      for (int call = 0; call < kCalls; ++call) population->Forward(places, seen.data(), out.data());
    });
    return us * 1000 / kCalls / static_cast<double>(places.size());
  };
}

// Nanoseconds per observation of a loop over the edges.
std::function<double()> Loop(const std::string& text) {
  const Layer layer = Network::Parse(text).layers()[0];
  const int inputs = layer.in[2], outputs = layer.out[2];
  std::vector<float> weights(layer.weights), values(inputs + layer.units);
  FillNoise(1, 0, layer.weights, weights.data());
  FillNoise(2, 0, inputs, values.data());
  return [=]() mutable {
    constexpr int kCalls = 5000;
    const double us = Microseconds([&] {
      for (int call = 0; call < kCalls; ++call) {
        const Edge* edge = layer.edges.data();
        const float* weight = weights.data();
        for (int unit = 0; unit < layer.units; ++unit) {
          float sum = weights[layer.edges.size() + unit];
          for (; edge != layer.edges.data() + layer.edges.size() && edge->to == inputs + unit; ++edge) {
            sum = Fma(*weight++, values[edge->from], sum);
          }
          values[inputs + unit] = unit < layer.units - outputs ? Tanh(sum) : sum;
        }
        asm volatile("" : : "r"(values.data()) : "memory");
      }
    });
    return us * 1000 / kCalls;
  };
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int repeats = 31;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      repeats = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "argument '%s' is unknown, expected --json or --repeats N\n", argv[i]);
      return 2;
    }
  }
  if (!json)
    std::printf("%6s %6s %6s %12s %12s %12s   ns per observation\n", "edges", "rows", "slots", "graph", "dense",
                "loop");
  for (const Size size : {Size{4, 5}, Size{8, 10}, Size{24, 12}}) {
    for (const auto& [rows, slots] : {std::pair{64, 1}, {16, 4}, {4, 16}}) {
      std::function<double()> ways[] = {Calls(size.graph(), rows, slots), Calls(size.dense(), rows, slots),
                                        Loop(size.graph())};
      std::vector<double> times[3];
      for (int repeat = 0; repeat < repeats; ++repeat) {
        for (int way = 0; way < 3; ++way) times[way].push_back(ways[way]());
      }
      const char* format = json ? "{\"edges\": %d, \"rows\": %d, \"slots\": %d, \"graph\": %.1f, \"dense\": %.1f, "
                                  "\"loop\": %.1f}\n"
                                : "%6d %6d %6d %12.1f %12.1f %12.1f\n";
      std::printf(format, size.edges(), rows, slots, Median(times[0]), Median(times[1]), Median(times[2]));
    }
  }
}
