// Rows on a GPU: initialized, mutated, assigned and read weights are bit-identical to the CPU's; errors; memory.
#include "native/on_gpu/rows.h"

#include <limits>
#include <thread>

#include "population/cuda/rows_memory.h"

using namespace neuroevo;

namespace {

const char kSmall[] = "input float32 6 5 2; conv 7 3 3 2 same 1; bias; relu; dense 300 1; bias; dense 3 0.1; bias";
const char kOther[] = "input float32 6 5 2; dense 33 1; tanh; dense 3 1";

// Compares every row of both populations, where row r has network network[r].
void CheckRowsSame(const Both& both, const std::vector<int32_t>& network) {
  for (size_t row = 0; row < network.size(); ++row) {
    CheckSame(both.gpu.Read(row, network[row]), both.cpu.Read(row, network[row]), Concat("row ", row));
  }
}

struct Mutations {
  std::vector<int64_t> dst, src, spreads;
  std::vector<uint64_t> seeds;
  std::vector<float> scale;
  void Add(int64_t to, int64_t from, uint64_t seed, float by, int64_t spread = -1) {
    spreads.push_back(spread);
    dst.push_back(to);
    src.push_back(from);
    seeds.push_back(seed);
    scale.push_back(by);
  }
  void Do(Both* both) const {
    both->Do([this](Population& population) { population.Perturb(dst, src, seeds, scale, spreads); });
  }
};

}  // namespace

TEST(InitialWeightsAreTheCpus) {
  for (const std::string text : {"input float32 1; dense 1 1", kSmall, kOther, kLargeModel}) {
    Both both({text}, 4);
    both.Do([](Population& population) { population.Init({3, 0, 1}, {0, 0, 0}, {0, 77, 0xfedcba9876543210u}); });
    for (int64_t row : {0, 1, 3}) CheckSame(both.gpu.Read(row), both.cpu.Read(row), text);
  }
}

TEST(MutationsAreTheCpusThroughChainsForksAndRowsOfOthers) {
  // Rows also change their network within the list. The last two rows are spreads.
  constexpr int64_t kRows = 12;
  Both both({kSmall, kOther}, kRows + 2);
  std::vector<int32_t> network(kRows + 2);
  both.Fill();
  for (int64_t row = 0; row < kRows + 2; ++row) network[row] = static_cast<int32_t>(row % 2);
  for (uint64_t round = 0; round < 4; ++round) {
    Mutations mutations;
    for (uint64_t i = 0; i < 60; ++i) {
      const Philox words = PhiloxWords(round, i);
      const int64_t dst = words.word[0] % kRows, src = i % 3 == 0 ? words.word[1] % kRows : dst;
      const int64_t spread = words.word[3] % 3 == 0 ? kRows + network[src] : -1;
      mutations.Add(dst, src, words.word[2] % 7, i % 5 == 0 ? -0.5f : 0.01f, spread);
      network[dst] = network[src];
    }
    mutations.Do(&both);
    CheckRowsSame(both, network);
  }
}

TEST(LongChainsAreTheCpus) {
  Both both({FullSize() ? kLargeModel : kSmall}, 4);
  both.Do([](Population& population) { population.Init({0, 3}, {0, 0}, {5, 6}); });
  Mutations chain;
  chain.Add(1, 0, 1000, 0.002f);
  for (uint64_t i = 1; i < 150; ++i) chain.Add(1, 1, 1000 + i, i % 10 == 3 ? 0.02f : 0.002f, i % 4 == 1 ? 3 : -1);
  chain.Add(2, 1, 9, 0.0f);
  chain.Do(&both);
  for (int64_t row = 0; row < 3; ++row) CheckSame(both.gpu.Read(row), both.cpu.Read(row), Concat("row ", row));
}

TEST(WhatIsAssignedIsRead) {
  Both both({"input float32 3; dense 2 1"}, 5);
  const float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> thetas = {1, -0.0f, 3, 1e-42f, 5, 6, -1, 7, kInfinity, 9, kNan, 11, 12, -1};
  both.Do([&](Population& population) { population.Assign({4, 1}, {0, 0}, thetas.data(), 7); });
  std::vector<float> out(16, 99);
  both.gpu.population->Read({1, 4}, out.data(), 8);
  CheckSame(out, {7, kInfinity, 9, kNan, 11, 12, 99, 99, 1, -0.0f, 3, 1e-42f, 5, 6, 99, 99});
}

TEST(AssignedRowsOfManyNetworksAreRead) {
  Both both({kSmall, kOther}, 9);
  both.Fill();
  for (int64_t row : {2, 5, 8}) {
    const int network = static_cast<int>(row % 3 == 2 ? 1 : 0);
    both.gpu.Assign(row, network, both.cpu.Read(1, 1));
    CheckSame(both.gpu.Read(row, network), both.cpu.Read(1, 1));
  }
  CheckSame(both.gpu.Read(4, 0), both.cpu.Read(4, 0));  // the row between the assigned ones
}

TEST(FillsOfManyThreadsAtOnce) {
  constexpr int kThreads = 8, kRounds = 10;
  Both both({kSmall}, 1 + 3 * kThreads);
  both.Fill();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        const int64_t row = 1 + 3 * t;
        for (uint64_t i = 0; i < kRounds; ++i) {
          both.Do([&](Population& population) {
            population.Init({row}, {0}, {i});
            population.Perturb({row, row + 1, row + 1}, {row, row, row + 1}, {i, 2, 3}, {0.1f, 0.2f, 0.3f});
            population.Perturb({row + 2}, {0}, {i}, {1.0f});  // all start from row 0
          });
          for (int64_t r = row; r < row + 3; ++r) CheckSame(both.gpu.Read(r), both.cpu.Read(r), Concat("row ", r));
        }
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(errors, std::vector<std::string>(kThreads));
}

TEST(ErrorsAreTheCpusAndChangeNothing) {
  Both both({kSmall, kOther}, 8);
  both.Do([](Population& population) { population.Init({0, 1}, {0, 1}, {1, 2}); });
  std::vector<float> x(10000), out(10000);
  both.Do([&](Population& p) {
    CHECK_THROWS(p.Init({9}, {0}, {1}), "row 9 is out of range [0, 8)");
    CHECK_THROWS(p.Init({0, 2}, {0, 2}, {1, 2}), "network 2 is out of range [0, 2)");
    CHECK_THROWS(p.Read({3}, out.data(), 9000), "row 3 has no network yet: fill it with Init");
    CHECK_THROWS(p.Perturb({0, 1}, {0, 3}, {1, 1}, {1, 1}), "row 3 has no network yet");
    CHECK_THROWS(p.Perturb({0}, {-7}, {1}, {1}), "src row -7 is out of range [0, 8)");
    CHECK_THROWS(p.Perturb({2}, {0}, {1}, {1}, {1}), "spread row 1 has network 1, expected 0");
    CHECK_THROWS(p.Forward({0, 9}, x.data(), out.data()), "row 9 is out of range [0, 8)");
    CHECK_THROWS(p.Forward({0, 5}, x.data(), out.data()), "row 5 has no network yet");
    CHECK_THROWS(p.Forward({0}, nullptr, out.data()), "observations is null");
    p.Forward({}, nullptr, nullptr);
    p.Init({}, {}, {});
    p.Perturb({}, {}, {}, {});
  });
  CheckRowsSame(both, {0, 1});
  CheckForward(both, {0, 1, 1}, 3, "after errors");
}

TEST(RowsThatDoNotFitTheCardAreRefusedWithWhatTheyNeedAndWhatIsFree) {
  NeedGpu();
  const int64_t row_bytes = (Network::Parse(kLargeModel).dimension() * 4 + 255) / 256 * 256;
  const int64_t rows = device::TotalBytes() / row_bytes + 1;
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    const auto make = [&] { Rows(NEUROEVO_CUDA_BACKEND, {kLargeModel}, rows, dtype); };
    CHECK_THROWS(make(), Concat(rows, " rows of ", row_bytes, " bytes each, float32, need "));
    CHECK_THROWS(make(), Concat(static_cast<double>(rows) * static_cast<double>(row_bytes) * 1e-9, " GB"));
    CHECK_THROWS(make(), " GB are free");
  }
  CHECK_THROWS(cuda::RowsMemory(1 << 24, int64_t{1} << 40, "float32"), "GB are free");
}

TEST(APopulationGivesItsMemoryBack) {
  NeedGpu();
  const int64_t rows = FullSize() ? device::FreeBytes() * 3 / 5 / (4052658 * 4) : 3;
  for (int i = 0; i < 4; ++i) {  // two populations at the same time would not fit
    Rows population(NEUROEVO_CUDA_BACKEND, {kLargeModel}, rows);
    population.population->Init({rows - 1}, {0}, {7});
    const float scale = population.population->networks()[0].layers()[0].init_scale;
    CHECK_EQ(population.Read(rows - 1)[11], Fma(scale, Noise(7, 11), 0.0f));
  }
}
