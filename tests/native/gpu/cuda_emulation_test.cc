// The guarantees of the CUDA emulation on the CPU: a correct kernel gives the same results for every order of its
// threads and copies, and each kind of mistake that would otherwise only show on a GPU causes wrong results.
#include <cstdint>
#include <vector>

#include "gpu/runtime.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr int kThreads = 64, kSlices = 9, kStages = 3;

enum class Mistake { kNone, kNoWait, kNoBarrier, kCopiesBeforeTheBarrier };

// sums[t] = the sum of words [kSlices, kThreads] over the slices in column t + 1, which the neighboring thread loads.
// Uses the same pipeline as tile.h.
__global__ void SumColumns(const uint32_t* words, Mistake mistake, uint32_t* sums) {
  uint32_t* stages = reinterpret_cast<uint32_t*>(cuda::DynamicShared());
  const int thread = static_cast<int>(threadIdx.x);
  const auto bring = [&](int slice) {
    if (slice < kSlices) {
      cuda::CopyAsync<4>(stages + slice % kStages * kThreads + thread, words + slice * kThreads + thread);
    }
    cuda::CopyAsyncCommit();
  };
  for (int slice = 0; slice < kStages - 1; ++slice) bring(slice);
  uint32_t sum = 0;
  for (int slice = 0; slice < kSlices; ++slice) {
    if (mistake != Mistake::kNoWait) cuda::CopyAsyncWait<kStages - 2>();
    if (mistake == Mistake::kCopiesBeforeTheBarrier) bring(slice + kStages - 1);
    if (mistake != Mistake::kNoBarrier) __syncthreads();
    if (mistake != Mistake::kCopiesBeforeTheBarrier) bring(slice + kStages - 1);
    sum += stages[slice % kStages * kThreads + (thread + 1) % kThreads];
  }
  sums[thread] = sum;
}

bool IsRight(Mistake mistake) {
  std::vector<uint32_t> words(kSlices * kThreads), expected(kThreads, 0), sums(kThreads);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>((i + 1) * 2654435761u);
  for (int slice = 0; slice < kSlices; ++slice) {
    for (int t = 0; t < kThreads; ++t) expected[t] += words[slice * kThreads + (t + 1) % kThreads];
  }
  cuda::Launch(SumColumns, 1, kThreads, kStages * kThreads * sizeof(uint32_t), nullptr,
               const_cast<const uint32_t*>(words.data()), mistake, sums.data());
  return sums == expected;
}

}  // namespace

TEST(APipelineOfCopiesIsRightInAnyOrder) {
  for (int i = 0; i < 20; ++i) CHECK(IsRight(Mistake::kNone));
}

TEST(CopiesThatAreNotWaitedForShow) { CHECK(!IsRight(Mistake::kNoWait)); }

TEST(AMissingBarrierShows) { CHECK(!IsRight(Mistake::kNoBarrier)); }

TEST(CopiesOverWhatIsStillReadShow) { CHECK(!IsRight(Mistake::kCopiesBeforeTheBarrier)); }

TEST(CopiesThatAreNotAlignedAreRefused) {
  const auto kernel = +[](const char* from) { cuda::CopyAsync<16>(cuda::DynamicShared(), from); };
  alignas(16) const char bytes[32] = {};
  cuda::Launch(kernel, 1, 1, 16, nullptr, bytes + 0);
  CHECK_THROWS(cuda::Launch(kernel, 1, 1, 16, nullptr, bytes + 4), "an asynchronous copy of 16 bytes is not aligned");
}
