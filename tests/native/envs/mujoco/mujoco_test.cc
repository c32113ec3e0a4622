// The MuJoCo family: replays, independence of threads and of whatever else is simulated, starts, cut-offs, bad input,
// and no allocation in a step. Parity with Gymnasium, and simulations that fail, are tested from Python.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "native/envs/mujoco/robots.h"

using namespace neuroevo;

namespace {

std::atomic<int64_t> allocations{0};

void* CountedMalloc(size_t size) {
  ++allocations;
  return std::aligned_alloc(64, (size + 63) / 64 * 64);
}

void CheckError(const EnvOptions& options, const std::string& message) {
  CHECK_THROWS(EnvPool("mujoco", options, 1, std::make_shared<ThreadPool>(1)), message);
}

}  // namespace

// Not inlined, or the compiler takes the pair for a mistake.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

TEST(TheTableIsComplete) {
  std::set<std::string> listed, known;
  for (const auto& [task, file] : kRobots) listed.insert(task);
  for (const MujocoTaskEntry& entry : MujocoTasks()) known.insert(entry.name);
  CHECK_EQ(listed, known);
}

TEST(TogetherAsAloneOnAnyThreads) {
  constexpr int64_t kSlots = 6;
  constexpr int kSteps = 60;
  for (const auto& [task, file] : kRobots) {
    std::vector<int64_t> slots;
    std::vector<uint64_t> seeds;
    for (int64_t s = 0; s < kSlots; ++s) {
      slots.push_back(kSlots - 1 - s);
      seeds.push_back(20 + s);
    }
    Robots one(task, file, 1, 1);
    std::vector<RobotEpisode> alone;
    for (uint64_t seed : seeds) alone.push_back(one.Play({0}, {seed}, kSteps)[0]);
    for (int threads : {1, 4}) {
      Robots many(task, file, kSlots, threads);
      for (int repeat = 0; repeat < 2; ++repeat) CHECK(many.Play(slots, seeds, kSteps) == alone);
    }
    CHECK(!(alone[0] == alone[1]));
    CHECK(alone[0].rewards.size() > 2);
  }
}

TEST(PoolsOfDifferentTasksAtOnce) {
  std::vector<std::vector<RobotEpisode>> episodes(kRobots.size());
  std::vector<std::string> failures(kRobots.size());
  ModelFile("ant.xml");  // skips this test, which a thread cannot
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kRobots.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        episodes[t] = Robots(kRobots[t].first, kRobots[t].second, 2, 2).Play({0, 1}, {1, 1}, 15);
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < kRobots.size(); ++t) {
    CHECK_EQ(failures[t], "");
    const RobotEpisode alone = Robots(kRobots[t].first, kRobots[t].second, 1, 1).Play({0}, {1}, 15)[0];
    for (const RobotEpisode& episode : episodes[t]) CHECK(episode == alone);
  }
}

TEST(StartsFollowFromTheSeedAsDocumented) {
  // HalfCheetah starts from zeros: 9 uniform numbers, then 9 normal ones, of Philox counters 0 to 17.
  Robots robots("HalfCheetah", "half_cheetah.xml", 1, 1);
  const uint64_t seed = 0x123456789abcdef0;
  robots.pool.Reset({0}, {seed}, {0});
  std::vector<double> state(18), expected;
  robots.pool.State({0}, state.data());
  for (uint64_t draw = 0; draw < 9; ++draw) {
    const Philox words = PhiloxWords(seed, draw);
    const double unit = std::floor((words.word[0] * 0x1p32 + words.word[1]) / 2048) * 0x1p-53;
    expected.push_back(-0.1 + 0.2 * unit);
  }
  for (uint64_t draw = 9; draw < 18; ++draw) expected.push_back(0.1 * Noise(seed, 4 * draw + 2));
  for (size_t i = 0; i < 18; ++i) CHECK(std::abs(state[i] - expected[i]) < 1e-15);
}

TEST(CutOffs) {
  Robots robots("HalfCheetah", "half_cheetah.xml", 1, 1);  // 5 frames a step, 1000 steps
  for (const auto& [max_frames, steps] : {std::pair<int64_t, size_t>{1, 1}, {5, 1}, {6, 2}, {40, 8}, {41, 9}}) {
    const RobotEpisode episode = robots.Play({0}, {9}, 20, max_frames)[0];
    CHECK(episode.done);
    CHECK_EQ(episode.rewards.size(), steps);
  }
  CHECK_EQ(robots.Play({0}, {9}, 2000)[0].rewards.size(), 1000);
  CHECK_EQ(robots.Play({0}, {9}, 2000, 1'000'000)[0].rewards.size(), 1000);
  CHECK_EQ(Robots("Reacher", "reacher.xml", 1, 1).Play({0}, {9}, 2000)[0].rewards.size(), 50);
  Robots longer("Reacher", "reacher.xml", 1, 1, {{"max_episode_steps", "300"}, {"frame_skip", "3"}});
  CHECK_EQ(longer.pool.spec().frame_skip, 3);
  CHECK_EQ(longer.Play({0}, {9}, 2000)[0].rewards.size(), 300);
  CHECK_EQ(longer.Play({0}, {9}, 2000, 100)[0].rewards.size(), 34);
}

TEST(ActionsThatAreNotFinite) {
  Robots robots("Ant", "ant.xml", 2, 2);
  robots.pool.Reset({0, 1}, {1, 2}, {0, 0});
  const std::vector<double> before = robots.Observe({0, 1});
  double rewards[2];
  bool dones[2];
  for (const auto& [bad, text] : {std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"},
                                  {std::numeric_limits<float>::infinity(), "inf"},
                                  {-std::numeric_limits<float>::infinity(), "-inf"}}) {
    std::vector<float> actions(16, 0.5f);
    actions[8 + 3] = bad;
    robots.pool.Step({1}, actions.data() + 8, rewards, dones);
    CHECK(dones[0] && rewards[0] == 0);
    CHECK_EQ(robots.pool.Failure(1), std::string("action[3] is ") + text + ", expected a finite number");
    CHECK_EQ(robots.Observe({0, 1}), before);  // it was not stepped
    robots.pool.Reset({1}, {2}, {0});
    CHECK_EQ(robots.pool.Failure(1), "");
  }
  const std::vector<float> actions(16, std::numeric_limits<float>::max());  // finite; the robot's motors have limits
  robots.pool.Step({0, 1}, actions.data(), rewards, dones);
  for (double value : robots.Observe({0, 1})) CHECK(std::isfinite(value));
  CHECK(dones[0] && rewards[0] == 0);  // but their cost is not finite
  CHECK(robots.pool.Failure(0).find("the reward is -inf") == 0);
}

TEST(BadOptions) {
  CheckError({},
             "mujoco option task is '', expected one of: Ant, HalfCheetah, Hopper, Humanoid, HumanoidStandup, "
             "InvertedDoublePendulum, InvertedPendulum, Pusher, Reacher, Swimmer, Walker2d");
  CheckError({{"task", "ant"}}, "mujoco option task is 'ant', expected one of: Ant,");
  CheckError({{"task", "Ant"}}, "mujoco needs the option model=FILE");
  CheckError({{"task", "Ant"}, {"model", "/nonexistent/ant.xml"}},
             "MuJoCo model '/nonexistent/ant.xml' cannot be loaded");
  CheckError(RobotOptions("Ant", "ant.xml", {{"frame_skip", "0"}}),
             "frame_skip is '0', expected an integer in [1, 1000]");
  CheckError(RobotOptions("Ant", "ant.xml", {{"healthy_z_range", "1"}}),
             "expected two numbers low,high with low <= high");
  CheckError(RobotOptions("Swimmer", "swimmer.xml", {{"healthy_reward", "1"}}),
             "mujoco has no option 'healthy_reward', expected one of: task, model, frame_skip, max_episode_steps, "
             "forward_reward_weight, ctrl_cost_weight, reset_noise_scale, exclude_current_positions_from_observation, "
             "feet");
  CheckError(RobotOptions("Ant", "ant.xml", {{"feet", "left_ankle_geom\nhoof"}}),
             "the MuJoCo model has no geom 'hoof', given in the option feet");
}

TEST(AnUnstableSimulationEndsItsEpisodeAlone) {
  // Motors that tear the robot apart where they are used: in slot 3.
  const EditedModel model("ant.xml", "gear=\"150\"", "gear=\"1e14\"");
  EnvPool pool("mujoco", {{"task", "Ant"}, {"model", model.path}}, 8, std::make_shared<ThreadPool>(4));
  const std::vector<int64_t> slots = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<double> rewards(8);
  bool dones[8];
  for (int episode = 0; episode < 3; ++episode) {
    pool.Reset(slots, std::vector<uint64_t>(8, 5), std::vector<int64_t>(8, 0));
    std::vector<float> actions(8 * 8, 0);
    std::fill_n(actions.begin() + 3 * 8, 8, 1.0f);
    pool.Step(slots, actions.data(), rewards.data(), dones);
    for (int64_t slot : slots) {
      CHECK_EQ(dones[slot], slot == 3);
      CHECK_EQ(rewards[slot], slot == 3 ? 0.0 : rewards[0]);
      CHECK_EQ(pool.Failure(slot).find("the simulation is unstable: bad ") == 0, slot == 3);
      std::vector<double> observation(pool.spec().observation_shape[0]);
      pool.Observe({slot}, observation.data());
      for (double value : observation) CHECK(std::isfinite(value));
    }
    CHECK(rewards[0] != 0);
  }
}

TEST(AnErrorOfMujocosEndsItsEpisode) {
  const EditedModel model("ant.xml", "<worldbody>", "<size memory=\"12K\"/><worldbody>");  // too small for some steps
  EnvPool pool("mujoco", {{"task", "Ant"}, {"model", model.path}}, 4, std::make_shared<ThreadPool>(4));
  const std::vector<int64_t> slots = {0, 1, 2, 3};
  const std::vector<float> actions(4 * 8, 1.0f);
  std::vector<double> rewards(4);
  bool dones[4] = {};
  for (int episode = 0; episode < 3; ++episode) {
    pool.Reset(slots, std::vector<uint64_t>(4, 5), std::vector<int64_t>(4, 0));
    for (dones[0] = false; !dones[0];) pool.Step(slots, actions.data(), rewards.data(), dones);
    for (int64_t slot : slots) {
      CHECK(dones[slot]);
      CHECK_EQ(rewards[slot], 0.0);
      CHECK(pool.Failure(slot).find("MuJoCo: mj_stackAlloc: out of memory") == 0);
    }
  }
}

TEST(AStepAllocatesNothing) {
  for (const auto& [task, file] : kRobots) {
    const auto factory = MakeEnvFactory("mujoco", RobotOptions(task, file));
    int64_t before = allocations;
    mju_user_malloc = CountedMalloc;
    const auto env = factory->Make();
    CHECK(allocations > before + 1);  // ours and MuJoCo's are counted
    const std::vector<float> action(factory->spec().num_actions, 0.1f);
    std::vector<double> observation(factory->spec().observation_shape[0]);
    env->Reset(1, 0);
    before = allocations;
    for (int step = 0; step < 20; ++step) {
      env->Step(action.data());
      env->Observe(observation.data());
    }
    env->Reset(2, 0);
    const int64_t after = allocations;
    mju_user_malloc = nullptr;
    CHECK_EQ(after, before);
  }
}
