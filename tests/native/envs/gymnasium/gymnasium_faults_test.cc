// Every allocation fails in turn while workers start and play an episode: the caller gets an error, nothing crashes or
// hangs, and no reply is mistaken for another one.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "native/c_api/faults.h"
#include "native/envs/gymnasium/workers.h"

using namespace neuroevo;

namespace {

// Play an episode with new workers; return an empty result if a worker or the pool failed.
std::vector<double> Play() {
  const std::string script = Start() + Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.5, false, "ghijkl")) +
                             Hear(kRender) + Say(Screen()) + Hear(kStep) + Say(Result(2, true, "mnopqr"));
  const std::string command = "command=/bin/sh\n-c\n" + script;
  const std::vector<const char*> options = {command.c_str(), "id=Toy", "timeout=60", "workers=2", "retries=0"};
  const std::vector<int64_t> slots = {0, 1}, max_frames = {0, 0};
  const std::vector<uint64_t> seeds = {1, 2};
  const std::vector<int32_t> actions = {2, 1};
  std::vector<double> rewards(2), found;
  std::vector<uint8_t> seen(12), screens(12), dones(2);
  PoolHandle pool;
  if (!Succeeds([&] { return neuroevo_env_pool_make("gymnasium", options.data(), 5, 2, pool.place()); }) ||
      !Succeeds([&] { return neuroevo_env_reset(pool, slots.data(), 2, seeds.data(), max_frames.data(), nullptr); })) {
    return {};
  }
  for (int step = 0; step < 2; ++step) {
    if (!Succeeds(
            [&] { return neuroevo_env_step(pool, slots.data(), 2, actions.data(), rewards.data(), dones.data()); })) {
      return {};
    }
    Do([&] { return neuroevo_env_observe(pool, slots.data(), 2, seen.data()); });
    found.insert(found.end(), rewards.begin(), rewards.end());
    found.insert(found.end(), seen.begin(), seen.end());
    if (step == 0) {
      if (!Succeeds([&] { return neuroevo_env_render(pool, slots.data(), 2, screens.data()); })) return {};
      found.insert(found.end(), screens.begin(), screens.end());
    }
  }
  return found;
}

}  // namespace

TEST(Workers) {
  allocations::FailEach([] {
    std::vector<double> found = Play();
    if (found.empty()) found = Play();  // a failure may have broken a worker, but not another pool
    return found;
  });
}

// If memory runs out while a timeout is reported, the late reply is not mistaken for the next one.
TEST(LateAnswers) {
  allocations::FailEach([] {
    const std::string script = Start() + Hear(kReset) + "sleep 0.6; " + Say(Result(0)) + Hear(kReset);
    const std::string command = "command=/bin/sh\n-c\n" + script;
    const std::vector<const char*> options = {command.c_str(), "id=Toy", "timeout=0.1"};
    const int64_t slot = 0, max_frames = 0;
    const uint64_t seed = 1;
    PoolHandle pool;
    CHECK_EQ(neuroevo_env_pool_make("gymnasium", options.data(), 3, 1, pool.place()), NEUROEVO_OK);
    const auto reset = [&] { return neuroevo_env_reset(pool, &slot, 1, &seed, &max_frames, nullptr); };
    const int code = allocations::Counted(reset);
    CHECK(code == NEUROEVO_ENVIRONMENT || code == NEUROEVO_INTERNAL);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // what was said by then would be there
    return reset();
  });
}
