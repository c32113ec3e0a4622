// The weighted sum of members' noise, compared with its definition product by product; bit-identical for all numbers of
// threads and splits.
#include "population/low_rank_sum.h"

#include <cmath>
#include <string>
#include <vector>

#include "c_api/low_rank.h"
#include "core/noise.h"
#include "native/check.h"
#include "networks/low_rank.h"

using namespace neuroevo;

namespace {

const std::vector<std::string> kTexts = {
    "input float32 1; dense 1 1",
    "input float32 6 5 2; bias; conv 7 3 3 2 same 1; bias; relu; dense 35 1; vbn; dense 3 1; bias",
    "input float32 70; dense 129 1; bias; relu; lstm 9 1; dense 4 1; bias",
};

NoiseTerms Terms(int64_t n) {
  NoiseTerms terms;
  for (int64_t i = 0; i < n; ++i) {
    terms.seeds.push_back(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
    terms.weights.push_back(std::ldexp(static_cast<float>(i % 7) - 3.3f, static_cast<int>(i % 5)));
  }
  return terms;
}

std::vector<double> Definition(const Network& network, int rank, const NoiseTerms& terms) {
  std::vector<double> sums(network.dimension(), 0.0);
  for (size_t t = 0; t < terms.seeds.size(); ++t) {
    int64_t next = 0;
    const auto value = [&](int64_t place) { return Noise(terms.seeds[t], next + place); };
    for (const Layer& layer : network.layers()) {
      const bool matrix = layer.kind == Layer::Kind::kConv || layer.kind == Layer::Kind::kDense;
      const int64_t n = layer.out[2], m = layer.weights / n;
      for (int64_t i = 0; i < layer.weights; ++i) {
        double& sum = sums[layer.offset + i];
        for (int q = 0; q < rank && matrix; ++q) {
          const float a = static_cast<float>(terms.weights[t] / std::sqrt(double(rank)) * value(q * m + i / n));
          sum += double{a} * double{value(rank * m + q * n + i % n)};
        }
        if (!matrix) sum += double{terms.weights[t]} * double{value(i)};
      }
      next += matrix ? rank * (m + n) : layer.weights;
    }
  }
  return sums;
}

void CheckSame(const std::vector<double>& sums, const std::vector<double>& expected) {
  CHECK_EQ(sums.size(), expected.size());
  for (size_t i = 0; i < sums.size(); ++i) CHECK_EQ(sums[i], expected[i]);
}

}  // namespace

TEST(SumsAreThoseOfTheDefinition) {
  ThreadPool pool(2);
  for (const std::string& text : kTexts) {
    const Network network = Network::Parse(text);
    for (int rank : {1, 3}) {
      for (int64_t n : {0, 1, 13, 300}) {
        std::vector<double> sums(network.dimension(), 0.0);
        AddLowRankNoise(network, rank, Terms(n), &pool, sums.data());
        CheckSame(sums, Definition(network, rank, Terms(n)));
      }
    }
  }
}

TEST(ThreadsAndSplitsChangeNothing) {
  const Network network = Network::Parse(kTexts[1]);
  const NoiseTerms terms = Terms(40);
  const std::vector<double> expected = Definition(network, 2, terms);
  for (int threads : {1, 3, 8}) {
    ThreadPool pool(threads);
    for (size_t part : {1, 7, 40}) {
      std::vector<double> sums(network.dimension(), 0.0);
      for (size_t begin = 0; begin < 40; begin += part) {
        const size_t end = std::min<size_t>(40, begin + part);
        const NoiseTerms some = {{terms.seeds.begin() + begin, terms.seeds.begin() + end},
                                 {terms.weights.begin() + begin, terms.weights.begin() + end},
                                 {}};
        AddLowRankNoise(network, 2, some, &pool, sums.data());
      }
      CheckSame(sums, expected);
    }
  }
}

TEST(TheSameBitsOnEveryMachineAndBuild) {
  const Network network = Network::Parse(kTexts[1]);
  ThreadPool pool(2);
  std::vector<double> sums(network.dimension(), 0.0);
  AddLowRankNoise(network, 2, Terms(100), &pool, sums.data());
  uint64_t hash = 0xcbf29ce484222325u;
  for (double sum : sums) hash = (hash ^ ToBits(static_cast<float>(sum))) * 0x100000001b3u;
  CHECK_EQ(hash, 0x6d10d22780e90aadu);
}

TEST(TheCInterfaceGivesTheSumOrTheMessage) {
  const Network network = Network::Parse(kTexts[1]);
  NoiseTerms terms = Terms(5);
  std::vector<double> sums(network.dimension(), 0.0);
  const auto sum = [&](const char* text, int32_t rank, int64_t dimension) {
    return neuroevo_low_rank_sum(text, rank, terms.seeds.data(), terms.weights.data(), 5, dimension, sums.data());
  };
  const int64_t d = network.dimension();
  CHECK_EQ(sum(kTexts[1].c_str(), 2, d), 0);
  CheckSame(sums, Definition(network, 2, terms));
  CHECK(sum(kTexts[1].c_str(), 0, d) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()), "rank is 0, expected 1 to 64");
  CHECK(sum(kTexts[1].c_str(), 2, d + 1) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()),
           "dimension is " + std::to_string(d + 1) + ", expected the network's D = " + std::to_string(d));
  terms.weights[3] = INFINITY;
  CHECK(sum(kTexts[1].c_str(), 2, d) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()).find("weight 3 is inf"), 0u);
}
