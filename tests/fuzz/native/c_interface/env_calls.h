// Calls of the C interface about env pools and vector environments.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ENV_CALLS_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ENV_CALLS_H_

#include <string>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/vector_env.h"
#include "fuzz/native/c_interface/arguments.h"

namespace neuroevo::fuzz {

inline const char* Family(Arguments* in) {
  return in->OneOf({"fuzz_buttons", "fuzz_joints", "fuzz_buttons", "fuzz_joints", "none", ""});
}

inline std::vector<const char*> Options(Arguments* in) {
  std::vector<const char*> options;
  for (int64_t i = in->Below(8) - 5; i > 0; --i)
    options.push_back(in->OneOf({"length=3", "length=0", "x=1", "length"}));
  return options;
}

// An env pool, and what its specification says.
class Pool {
 public:
  ~Pool() { Free(); }

  neuroevo_env_pool* handle() const { return handle_; }
  int64_t slots() const { return slots_; }

  void Free() {
    neuroevo_env_pool_free(handle_);
    handle_ = nullptr;
    slots_ = 0;
  }

  void Make(Arguments* in) {
    const char* family = Family(in);
    const std::vector<const char*> options = Options(in);
    const int64_t slots = in->Chance(10) ? in->Index(4) : 1 + in->Below(4);
    Make(family, options, in->Told(static_cast<int64_t>(options.size())), slots);
  }
  void Make(const char* family, const std::vector<const char*>& options, int64_t told, int64_t slots) {
    Free();
    if (!Succeeded(neuroevo_env_pool_make(family, options.data(), told, slots, &handle_))) return;
    slots_ = slots;
    neuroevo_env_spec spec;
    Require(Succeeded(neuroevo_env_pool_spec(handle_, &spec)), "a pool has no specification");
    buttons_ = std::string(spec.action_dtype) == "int32";
    num_actions_ = spec.num_actions;
  }

  // Of a pool that is there or not.
  void Call(int64_t what, Arguments* in) {
    const int64_t length = in->Length(), told = in->Told(length);
    const auto slots = in->Indices(length, slots_);
    switch (what) {
      case 0: {
        const auto seeds = in->Seeds(length);
        const auto frames = in->Indices(length, 9), normalizers = in->Indices(length, 1);
        const bool normalized = in->Chance(20);
        Succeeded(neuroevo_env_reset(handle_, slots.get(), told, seeds.get(), frames.get(),
                                     normalized ? normalizers.get() : nullptr));
        break;
      }
      case 1: {
        const int64_t width = in->Chance(10) ? in->Index(9) : num_actions_ * (1 + in->Below(2));
        const auto outputs = in->Floats(length * std::clamp<int64_t>(width, 0, 9));
        auto actions = in->Room<int32_t>(length * 3);
        // A width that no array has may only be refused.
        if (width < 0 || width > 9)
          Require(!Succeeded(neuroevo_env_actions(handle_, nullptr, told, width, nullptr)), width);
        if (width >= 0 && width <= 9) {
          Succeeded(neuroevo_env_actions(handle_, outputs.get(), told, width, actions.get()));
        }
        break;
      }
      case 2: {
        const auto buttons = in->Networks(length, 3);
        const auto joints = in->Floats(length * 2);
        auto rewards = in->Room<double>(length);
        auto dones = in->Room<uint8_t>(length);
        const void* actions = buttons_ ? static_cast<const void*>(buttons.get()) : joints.get();
        Succeeded(neuroevo_env_step(handle_, slots.get(), told, actions, rewards.get(), dones.get()));
        break;
      }
      case 3: {
        auto room = in->Room<double>(length * 3);
        const auto write = std::vector{neuroevo_env_observe, neuroevo_env_behavior}[in->Below(2)];
        Succeeded(write(handle_, slots.get(), told, room.get()));
        break;
      }
      case 4: {
        auto room = in->Room<float>(length * 3);
        Succeeded(neuroevo_env_observe_normalized(handle_, slots.get(), told, room.get()));
        break;
      }
      case 5: {
        auto screens = in->Room<uint8_t>(length * 6);
        Succeeded(neuroevo_env_render(handle_, slots.get(), told, screens.get()));
        break;
      }
      case 6: {
        auto states = in->Room<double>(length * 2);
        Succeeded(neuroevo_env_state(handle_, slots.get(), told, states.get()));
        break;
      }
      case 7: {
        const int64_t n = in->Chance(80) ? 3 : length;
        const auto mean = in->Doubles(n), std = in->Doubles(n);
        const int64_t number = in->Index(2), told_n = in->Told(n);
        Succeeded(neuroevo_env_set_normalizer(handle_, number, mean.get(), std.get(), told_n));
        break;
      }
      case 8: {
        const auto numbers = in->Indices(length, 2);
        Succeeded(neuroevo_env_drop_normalizers(handle_, numbers.get(), told));
        break;
      }
      case 9: {
        const int64_t every = in->Index(3), samples = in->Index(4);
        Succeeded(neuroevo_env_record_behaviors(handle_, every, samples));
        break;
      }
      default: {
        const char* failure = "";
        if (Succeeded(neuroevo_env_failure(handle_, in->Index(slots_), &failure))) Require(failure != nullptr, "null");
        break;
      }
    }
  }
  static constexpr int64_t kCalls = 11;

 private:
  neuroevo_env_pool* handle_ = nullptr;
  int64_t slots_ = 0, num_actions_ = 3;
  bool buttons_ = true;
};

// Environments under the vector interface.
class Vector {
 public:
  ~Vector() { Free(); }
  void Free() {
    neuroevo_vector_free(handle_);
    handle_ = nullptr;
    envs_ = 0;
  }

  void Make(Arguments* in) {
    Free();
    const char* family = Family(in);
    const std::vector<const char*> options = Options(in);
    const char* autoreset = in->OneOf({"NextStep", "SameStep", "Disabled", "Never"});
    const int64_t envs = in->Chance(10) ? in->Index(4) : 1 + in->Below(3), steps = in->Index(7);
    static const int32_t kThreads[] = {0, 0, 1, 2, -1, 5000};
    const int32_t threads = kThreads[in->Below(6)];
    const int64_t told = in->Told(static_cast<int64_t>(options.size()));
    if (!Succeeded(neuroevo_vector_make(family, options.data(), told, envs, autoreset, steps, threads, &handle_))) {
      return;
    }
    envs_ = envs;
    neuroevo_vector_spec spec;
    Require(Succeeded(neuroevo_vector_get_spec(handle_, &spec)) && spec.infos == 2, "no specification");
    buttons_ = std::string(spec.action_dtype) == "int32";
  }

  void Call(int64_t what, Arguments* in) {
    auto observations = in->Room<double>(envs_ * 3), final_observations = in->Room<double>(envs_ * 3);
    auto rewards = in->Room<double>(envs_);
    auto terminations = in->Room<uint8_t>(envs_), truncations = in->Room<uint8_t>(envs_);
    auto failures = in->Room<uint8_t>(envs_);
    auto infos = in->Room<int64_t>(2 * envs_), final_infos = in->Room<int64_t>(2 * envs_);
    const neuroevo_vector_output output = {observations.get(),       rewards.get(),    terminations.get(),
                                           truncations.get(),        failures.get(),   infos.get(),
                                           final_observations.get(), final_infos.get()};
    switch (what) {
      case 0: {
        std::vector<uint8_t> flags[2];
        for (auto& each : flags) {
          for (int64_t i = 0; i < envs_; ++i) each.push_back(in->Chance(80) ? 1 : in->Byte());
        }
        const Array<uint8_t> mask(flags[0], in->Missing()), seeded(flags[1], in->Missing());
        const auto seeds = in->Seeds(envs_);
        Succeeded(neuroevo_vector_reset(handle_, mask.get(), seeded.get(), seeds.get(), &output));
        break;
      }
      case 1: {
        const auto buttons = in->Indices(envs_, 3);
        const auto joints = in->Floats(envs_ * 2);
        const void* actions = buttons_ ? static_cast<const void*>(buttons.get()) : joints.get();
        Succeeded(neuroevo_vector_step(handle_, actions, &output));
        break;
      }
      case 2: {
        auto screens = in->Room<uint8_t>(envs_ * 6);
        Succeeded(neuroevo_vector_render(handle_, screens.get()));
        break;
      }
      default: {
        const char* failure = "";
        if (Succeeded(neuroevo_vector_failure(handle_, in->Index(envs_), &failure)))
          Require(failure != nullptr, "null");
        break;
      }
    }
  }
  static constexpr int64_t kCalls = 4;

 private:
  neuroevo_vector_env* handle_ = nullptr;
  int64_t envs_ = 0;
  bool buttons_ = true;
};

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ENV_CALLS_H_
