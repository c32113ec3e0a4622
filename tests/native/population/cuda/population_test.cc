// Host side of GPU populations: a population uses its own GPU, whatever the thread's current GPU, and rejects calls
// that need too much memory before anything has changed.
#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

const char kNetwork[] = "input uint8 3 4 2; dense 5 1.0; bias; relu; dense 3 0.5; bias";
const char kOther[] = "input uint8 3 4 2; dense 3 1.0; bias";

std::vector<float> Forward(Rows* rows, const std::vector<int64_t>& slots) {
  std::vector<uint8_t> observations(slots.size() * 24);
  for (size_t i = 0; i < observations.size(); ++i) observations[i] = static_cast<uint8_t>(37 * i);
  std::vector<float> out(slots.size() * 3);
  rows->population->Forward(slots, observations.data(), out.data());
  return out;
}

}  // namespace

TEST(CallsGoToThePopulationsGpuWhicheverOneTheThreadUses) {
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    Rows gpu(NEUROEVO_CUDA_BACKEND, {kNetwork}, 3, dtype), cpu("cpu", {kNetwork}, 3, dtype);
    for (Rows* rows : {&gpu, &cpu}) rows->population->Init({0, 1, 2}, {0, 0, 0}, {5, 6, 7});
    {
      const device::Using second(1);
      gpu.population->Perturb({1}, {0}, {8}, {0.5f});  // reuses the stream of Init
      cpu.population->Perturb({1}, {0}, {8}, {0.5f});
      CHECK(Forward(&gpu, {2, 1, 1, 0}) == Forward(&cpu, {2, 1, 1, 0}));
      CHECK_EQ(device::Current(), 1);
      // A population created here still uses the first GPU, which is the default.
      Rows late(NEUROEVO_CUDA_BACKEND, {kNetwork}, 3, dtype);
      late.population->Init({0, 1, 2}, {0, 0, 0}, {5, 6, 7});
      const device::Using first(0);
      late.population->Perturb({1}, {0}, {8}, {0.5f});
      CHECK(Forward(&late, {2, 1, 1, 0}) == Forward(&cpu, {2, 1, 1, 0}));
    }
    CHECK_EQ(device::Current(), 0);
  }
}

TEST(AChainThroughMoreRowsThanScratchRowsIsRefusedAndChangesNothing) {
  Rows gpu(NEUROEVO_CUDA_BACKEND, {kNetwork, kOther}, 20, DType::kInt8, 1);
  gpu.population->Init({0, 5, 6}, {0, 1, 1}, {1, 2, 3});
  const std::vector<float> before = Forward(&gpu, {5, 6});
  // Row 6 from row 0, 7 from 6 ... 14 from 13; and, outside of this chain, 15 from row 0 and 5 from itself.
  std::vector<int64_t> dst = {15, 5}, src = {0, 5};
  for (int64_t row = 1; row <= 9; ++row) {
    dst.push_back(row + 5);
    src.push_back(row == 1 ? 0 : row + 4);
  }
  const auto perturb = [&] {
    gpu.population->Perturb(dst, src, std::vector<uint64_t>(dst.size(), 9), std::vector<float>(dst.size(), 0.5f));
  };
  CHECK_THROWS(perturb(), "a chain includes 9 rows that keep no float32 weights, expected at most 8");
  CHECK(Forward(&gpu, {5, 6}) == before);
  CHECK_THROWS(Forward(&gpu, {15}), "row 15 has no network yet");
  CHECK_THROWS(Forward(&gpu, {14}), "row 14 has no network yet");
  // Row 5 still has the weights of Init, so it can be perturbed; and 8 rows are allowed.
  dst.pop_back();
  src.pop_back();
  perturb();
  Rows cpu("cpu", {kNetwork, kOther}, 20, DType::kInt8, 1);
  cpu.population->Init({0, 5, 6}, {0, 1, 1}, {1, 2, 3});
  cpu.population->Perturb(dst, src, std::vector<uint64_t>(dst.size(), 9), std::vector<float>(dst.size(), 0.5f));
  CHECK(Forward(&gpu, dst) == Forward(&cpu, dst));
}

TEST(WhatInt8RowsNeedIsSaidWithWhatIsThereAlready) {
  const int64_t rows = 1 << 24;  // of at least 16 units with 64 bytes: more than the emulated GPU's memory
  const auto make = [&] { Rows(NEUROEVO_CUDA_BACKEND, {kNetwork}, rows, DType::kInt8, 0); };
  CHECK_THROWS(make(), "bytes each, int8 in addition to 8 rows of float32, need ");
}
