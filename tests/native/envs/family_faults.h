// Every allocation fails in turn while a family's environments play: the call that needed the memory reports it, and a
// restarted episode has the same outcomes as without failures.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_FAMILY_FAULTS_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_FAMILY_FAULTS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "native/c_api/faults.h"

namespace neuroevo {

inline int64_t Product(const int64_t* shape, int64_t rank) {
  int64_t product = 1;
  for (int64_t i = 0; i < rank; ++i) product *= shape[i];
  return product;
}

// Create a pool of two environments, play them, and return all output bytes. making: whether allocations fail while the
// pool is created; false if external code creates it.
inline std::vector<char> PlayFamily(const char* family, const std::vector<std::string>& options, bool making) {
  constexpr int64_t kSlots = 2;
  constexpr int kSteps = 6;
  PoolHandle pool;
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const auto count = static_cast<int64_t>(texts.size());
  const auto make = [&] { return neuroevo_env_pool_make(family, texts.data(), count, kSlots, pool.place()); };
  if (making) {
    Do(make);
  } else {
    CHECK_EQ(make(), NEUROEVO_OK);
  }
  neuroevo_env_spec spec;
  Do([&] { return neuroevo_env_pool_spec(pool, &spec); });
  Do([&] { return neuroevo_env_record_behaviors(pool, 2, 3); });
  const int64_t size = std::strcmp(spec.observation_dtype, "uint8") == 0 ? 1 : sizeof(double);  // or less
  std::vector<char> observations(kSlots * size * Product(spec.observation_shape, spec.observation_rank));
  std::vector<char> behaviors(kSlots * sizeof(double) * Product(spec.behavior_shape, spec.behavior_rank));
  std::vector<uint8_t> screens(spec.render_rank == 0 ? 0 : kSlots * Product(spec.render_shape, spec.render_rank));
  std::vector<char> actions(kSlots * sizeof(float) * spec.num_actions);  // 0, of either kind
  std::vector<double> rewards(kSlots);
  std::vector<uint8_t> dones(kSlots);
  const std::vector<int64_t> slots = {1, 0}, max_frames = {0, 400};
  const std::vector<uint64_t> seeds = {7, 8};
  std::vector<char> found;
  const auto keep = [&](const auto& values) {
    const char* bytes = reinterpret_cast<const char*>(values.data());
    found.insert(found.end(), bytes, bytes + values.size() * sizeof(values[0]));
  };
  for (bool whole = false; !whole;) {
    found.clear();
    whole = Succeeds(
        [&] { return neuroevo_env_reset(pool, slots.data(), kSlots, seeds.data(), max_frames.data(), nullptr); });
    for (int step = 0; step < kSteps && whole; ++step) {
      Do([&] { return neuroevo_env_observe(pool, slots.data(), kSlots, observations.data()); });
      keep(observations);
      whole = Succeeds(
          [&] { return neuroevo_env_step(pool, slots.data(), kSlots, actions.data(), rewards.data(), dones.data()); });
      keep(rewards);
      keep(dones);
    }
  }
  Do([&] { return neuroevo_env_behavior(pool, slots.data(), kSlots, behaviors.data()); });
  keep(behaviors);
  if (!screens.empty()) Do([&] { return neuroevo_env_render(pool, slots.data(), kSlots, screens.data()); });
  keep(screens);
  return found;
}

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_FAMILY_FAULTS_H_
