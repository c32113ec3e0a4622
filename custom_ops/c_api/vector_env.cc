#include "c_api/vector_env.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/error.h"
#include "envs/vector_env.h"

namespace neuroevo {
namespace {

struct NamedVectorEnv {
  VectorEnv object;
  std::vector<const char*> info_names;
};

auto& vector_envs = *new Handles<neuroevo_vector_env, NamedVectorEnv>("vector environment");

VectorEnv::Autoreset ParseAutoreset(const std::string& name) {
  if (name == "NextStep") return VectorEnv::Autoreset::kNextStep;
  if (name == "SameStep") return VectorEnv::Autoreset::kSameStep;
  if (name == "Disabled") return VectorEnv::Autoreset::kDisabled;
  ThrowInvalid("autoreset is '", name, "', expected NextStep, SameStep or Disabled");
}

bool* Bools(uint8_t* bytes) { return reinterpret_cast<bool*>(bytes); }
static_assert(sizeof(bool) == 1, "flags are bytes");

// Copy flags and normalize them to 0 or 1, since reading another value as bool is undefined behavior.
std::vector<uint8_t> Flags(const char* what, const uint8_t* bytes, int64_t n) {
  CheckArray(what, bytes, n);
  std::vector<uint8_t> flags(bytes, bytes + n);
  for (uint8_t& flag : flags) flag = flag != 0;
  return flags;
}

VectorEnv::Output Output(VectorEnv* env, const neuroevo_vector_output* given) {
  CheckArray("output", given, 1);
  const neuroevo_vector_output& out = *given;
  const int64_t n = env->num_envs(), infos = n * static_cast<int64_t>(env->info_names().size());
  for (const auto& [what, array] : {std::pair<const char*, const void*>{"observations", out.observations},
                                    {"rewards", out.rewards},
                                    {"terminations", out.terminations},
                                    {"truncations", out.truncations},
                                    {"failures", out.failures}}) {
    CheckArray(what, array, n);
  }
  CheckArray("infos", out.infos, infos);
  if (env->autoreset() == VectorEnv::Autoreset::kSameStep) {
    CheckArray("final_observations", out.final_observations, n);
    CheckArray("final_infos", out.final_infos, infos);
  }
  return {out.observations,    out.rewards, Bools(out.terminations), Bools(out.truncations),
          Bools(out.failures), out.infos,   out.final_observations,  out.final_infos};
}

}  // namespace
}  // namespace neuroevo

using neuroevo::Guard;
using neuroevo::vector_envs;

extern "C" {

int neuroevo_vector_make(const char* family, const char* const* options, int64_t n, int64_t num_envs,
                         const char* autoreset, int64_t max_steps, int32_t threads, neuroevo_vector_env** env) {
  return Guard([&] {
    if (n < 0) neuroevo::ThrowInvalid("number of options is ", n, ", expected 0 or more");
    auto pool = threads == 0 ? neuroevo::ProcessPool() : std::make_shared<neuroevo::ThreadPool>(threads);
    neuroevo::CheckArray("options", options, n);
    std::shared_ptr<neuroevo::NamedVectorEnv> made(
        new neuroevo::NamedVectorEnv{{family, neuroevo::ParseEnvOptions({options, options + n}), num_envs,
                                      neuroevo::ParseAutoreset(autoreset), max_steps, std::move(pool)},
                                     {}});
    for (const std::string& name : made->object.info_names()) made->info_names.push_back(name.c_str());
    *env = vector_envs.Add(std::move(made));
  });
}

void neuroevo_vector_free(neuroevo_vector_env* env) { vector_envs.Take(env); }

int neuroevo_vector_get_spec(neuroevo_vector_env* env, neuroevo_vector_spec* spec) {
  return Guard([&] {
    const auto named = vector_envs.Get(env);
    const neuroevo::EnvSpec& own = named->object.spec();
    *spec = {neuroevo::NameOf(own.observation_dtype),
             own.observation_shape.data(),
             static_cast<int64_t>(own.observation_shape.size()),
             neuroevo::NameOf(own.action_dtype),
             own.num_actions,
             own.action_low.data(),
             own.action_high.data(),
             own.frame_skip,
             own.render_shape.data(),
             static_cast<int64_t>(own.render_shape.size()),
             named->info_names.data(),
             static_cast<int64_t>(named->info_names.size())};
  });
}

int neuroevo_vector_reset(neuroevo_vector_env* env, const uint8_t* mask, const uint8_t* seeded, const uint64_t* seeds,
                          const neuroevo_vector_output* output) {
  return Guard([&] {
    const auto named = vector_envs.Get(env);
    neuroevo::VectorEnv& object = named->object;
    neuroevo::CheckArray("seeds", seeds, object.num_envs());
    auto masked = neuroevo::Flags("mask", mask, object.num_envs());
    auto has_seed = neuroevo::Flags("seeded", seeded, object.num_envs());
    object.Reset(neuroevo::Bools(masked.data()), neuroevo::Bools(has_seed.data()), seeds,
                 neuroevo::Output(&object, output));
  });
}

int neuroevo_vector_step(neuroevo_vector_env* env, const void* actions, const neuroevo_vector_output* output) {
  return Guard([&] {
    const auto named = vector_envs.Get(env);
    neuroevo::VectorEnv& object = named->object;
    neuroevo::CheckArray("actions", actions, object.num_envs());
    object.Step(actions, neuroevo::Output(&object, output));
  });
}

int neuroevo_vector_render(neuroevo_vector_env* env, uint8_t* screens) {
  return Guard([&] {
    const auto named = vector_envs.Get(env);
    neuroevo::VectorEnv& object = named->object;
    neuroevo::CheckArray("screens", screens, object.num_envs());
    object.Render(screens);
  });
}

int neuroevo_vector_failure(neuroevo_vector_env* env, int64_t index, const char** failure) {
  return Guard([&] {
    thread_local std::string text;
    text = vector_envs.Get(env)->object.Failure(index);
    *failure = text.c_str();
  });
}

}  // extern "C"
