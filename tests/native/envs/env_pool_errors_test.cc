// Every error of the env pool, on a toy family, and exceptions from environments.
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "envs/env_pool.h"
#include "native/check.h"
#include "native/envs/toys.h"

using namespace neuroevo;

TEST(SlotErrors) {
  Toys toys(8);
  toys.Reset({0, 1, 2, 3}, {0, 0, 0, 0});
  for (int64_t bad :
       {int64_t{8}, int64_t{-1}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    const std::string message = "slot " + std::to_string(bad) + " is out of range [0, 8)";
    CHECK_THROWS(toys.Reset({0, bad}, {1, 1}), message);
    CHECK_THROWS(toys.Step({0, bad}, {1, 1}), message);
    CHECK_THROWS(toys.Observe({0, bad}), message);
  }
  for (const std::vector<int64_t>& twice : {std::vector<int64_t>{1, 1, 2}, {1, 2, 1}, {2, 0, 1, 1}}) {
    const std::string message = "slot 1 occurs more than once in one call";
    CHECK_THROWS(toys.Reset(twice, std::vector<uint64_t>(twice.size())), message);
    CHECK_THROWS(toys.Step(twice, std::vector<int32_t>(twice.size())), message);
    CHECK_THROWS(toys.Observe(twice), message);
  }
  CHECK_THROWS(toys.Step({0, 5}, {1, 1}), "slot 5 is not live: its episode is over or it was never reset");
  CHECK_THROWS(toys.Observe({0, 5}), "slot 5 has no observation");
  CHECK_THROWS(toys.Reset({0, 1}, {1}), "seeds has 1 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0, 0}), "max_frames has 3 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {-1}), "normalizers has 1 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {-1, 3}), "normalizer 3 is not set");
  CHECK_THROWS(toys.Reset({0, 1}, {1, 1}, -5), "max_frames of slot 0 is -5, expected 0 or more");
  // None of these left a slot marked as busy, or changed.
  CHECK_EQ(toys.Step({3, 2, 1, 0}, {1, 1, 1, 1}), (Rewards{1, 1, 1, 1, 0}));
}

TEST(ActionOutOfRange) {
  Toys toys(2);
  toys.Reset({0, 1}, {0, 0});
  CHECK_THROWS(toys.Step({0, 1}, {1, 4}), "action 4 of slot 1 is out of range [0, 4)");
  CHECK_THROWS(toys.Step({1, 0}, {1, -1}), "action -1 of slot 0 is out of range [0, 4)");
  CHECK_EQ(toys.Observe({0, 1}), (Values{0, 0, 0, 0, 0, 0}));
}

TEST(StepAfterTheEnd) {
  Toys toys(2, {{"length", "2"}});
  toys.Reset({0, 1}, {8, 8});
  toys.Step({0}, {0});
  CHECK_EQ(toys.Step({0, 1}, {1, 1}), (Rewards{2, 2, 1}));
  CHECK_THROWS(toys.Step({1, 0}, {1, 1}), "slot 0 is not live");
  CHECK_EQ(toys.Observe({0}), (Values{8, 2, 1}));  // the last observation
  CHECK_EQ(toys.Step({1}, {1}), (Rewards{3, 1}));
  toys.Reset({0}, {16});
  CHECK_EQ(toys.Step({0}, {1}), (Rewards{3, 0}));
}

TEST(SlotInUseByAnotherCall) {
  Toys toys(4);
  toys.Reset({0, 1, 2, 3}, {0, 0, 0, 0});
  gate.Set(false);
  std::thread other([&] { toys.Reset({3, 2}, {1, kResetWaits}); });
  gate.AwaitVisitor();
  const std::string message = "slot 2 is in use by another call";
  CHECK_THROWS(toys.Step({0, 2, 1}, {1, 1, 1}), message);
  CHECK_THROWS(toys.Reset({2}, {1}), message);
  CHECK_THROWS(toys.Observe({1, 2}), message);
  CHECK_THROWS(toys.Step({3}, {1}), "slot 3 is in use by another call");  // until the whole call is over
  CHECK_EQ(toys.Step({1, 0}, {1, 1}), (Rewards{1, 1, 0}));                // the others were let go
  gate.Set(true);
  other.join();
  CHECK_EQ(toys.Step({2, 3}, {1, 1}), (Rewards{1 + kResetWaits / 8.0, 1.125, 0}));
}

TEST(ExceptionInStep) {
  for (int threads : {1, 3}) {
    Toys toys(3, {}, threads);
    toys.Reset({0, 1, 2}, {0, 0, 0});
    CHECK_THROWS(toys.Step({0, 1, 2}, {1, kStepThrows, 1}), "the toy broke");
    CHECK_THROWS(toys.Step({1}, {1}), "slot 1 is not live");  // its state is unknown
    toys.Reset({1}, {8});
    CHECK_EQ(toys.Step({1}, {1}), (Rewards{2, 0}));
    toys.Step({0, 2}, {0, 0});  // the others are as good as before
  }
}

TEST(ExceptionInReset) {
  Toys toys(3);
  toys.Reset({0, 1}, {0, 0});
  CHECK_THROWS(toys.Reset({1}, {kResetThrows}), "the toy cannot be reset");
  CHECK_THROWS(toys.Step({1}, {1}), "slot 1 is not live");
  CHECK_THROWS(toys.Observe({1}), "slot 1 has no observation");
  CHECK_THROWS(toys.Reset({2}, {kResetThrows}), "the toy cannot be reset");
  CHECK_THROWS(toys.Observe({2}), "slot 2 has no observation");
  CHECK_EQ(toys.Step({0}, {1}), (Rewards{1, 0}));
  toys.Reset({1, 2}, {8, 8});
  CHECK_EQ(toys.Step({1, 2}, {1, 2}), (Rewards{2, 3, 0}));
}

TEST(ExceptionInObserve) {
  constexpr int64_t kSlots = 30;
  Toys toys(kSlots);
  std::vector<int64_t> all;
  for (int64_t s = 0; s < kSlots; ++s) all.push_back(s);
  toys.Reset(all, std::vector<uint64_t>(kSlots, 8));
  toys.Reset({9}, {kObserveThrows});
  CHECK_THROWS(toys.Observe({9}), "the toy cannot be seen");  // a few slots: in this thread
  CHECK_THROWS(toys.Observe(all), "the toy cannot be seen");  // many: on the pool
  CHECK_EQ(toys.Observe({8}), (Values{8, 0, 0}));
  CHECK_EQ(toys.Step({9}, {1}), (Rewards{1 + kObserveThrows / 8.0, 0}));  // it may still be played
  toys.Reset({9}, {16});
  CHECK_EQ(toys.Observe({9}), (Values{16, 0, 0}));
  CHECK_EQ(toys.Observe(all).size(), 3 * kSlots);
}

TEST(NoBehaviorsAndNoScreens) {
  Toys toys(2);
  toys.Reset({0}, {1});
  CHECK_THROWS(toys.Behavior({0}), "behavior is not supported by this environment");
  CHECK_THROWS(toys.Render({0}), "rendering is not supported by this environment");
  const EnvSpec spec;
  const Toy toy(spec, 1);
  CHECK_THROWS(toy.Behavior(nullptr), "behavior is not supported by this environment");
  CHECK_THROWS(toy.Render(nullptr), "rendering is not supported by this environment");
}

TEST(TwoThreadsFightForASlot) {
  // Either a call has all of its slots or it fails as a whole: every step that was counted did happen.
  Toys toys(3);
  toys.Reset({0, 1, 2}, {0, 0, 0});
  std::atomic<int> counted[3] = {};
  std::atomic<int> strange{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const int64_t mine = t, next = (t + 1) % 3;
      for (int i = 0; i < 100; ++i) {
        try {
          toys.Step({mine, next}, {1, 1});
          ++counted[mine];
          ++counted[next];
        } catch (const std::exception& e) {
          if (std::string(e.what()).find("is in use by another call") == std::string::npos) ++strange;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(strange.load(), 0);
  const Values seen = toys.Observe({0, 1, 2});
  for (int s = 0; s < 3; ++s) CHECK_EQ(seen[3 * s + 1], static_cast<float>(counted[s].load()));
}

TEST(MakingErrors) {
  const auto pool = std::make_shared<ThreadPool>(1);
  CHECK_THROWS(EnvPool("tetris", {}, 1, pool), "environment family 'tetris' is unknown, expected one of: toy");
  CHECK_THROWS(EnvPool("toy", {}, 0, pool), "number of slots is 0, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {}, -2, pool), "number of slots is -2, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {}, 65537, pool), "number of slots is 65537, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {{"memory", "1000000000"}}, 65536, pool),
               "65536 environments of family 'toy' need 65536 GB of memory, but only ");
  CHECK_THROWS(EnvPool("toy", {{"lenght", "5"}}, 1, pool), "toy has no option 'lenght'");
  CHECK_THROWS(EnvPool("toy", {{"actions", "unbounded"}}, 1, pool), "family 'toy' has 0 bounds of actions, expected 4");
  CHECK_THROWS(EnvPool("toy", {{"length", "0"}}, 1, pool),
               "toy option length is '0', expected an integer in [1, 1000]");
}
