#include "c_api/neuroevo.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "core/trace.h"

namespace neuroevo {
namespace {

DType WeightDType(const std::string& name) {
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    if (name == NameOf(dtype)) return dtype;
  }
  ThrowInvalid("dtype is '", name, "', expected 'float32' or 'int8'");
}

}  // namespace

uintptr_t NextHandle() {
  static std::atomic<uintptr_t> last{0};
  return ++last;
}

Handles<neuroevo_env_pool, EnvPool>& env_pools = *new Handles<neuroevo_env_pool, EnvPool>("env pool");
Handles<neuroevo_population, Population>& populations = *new Handles<neuroevo_population, Population>("population");

}  // namespace neuroevo

using neuroevo::CheckArray;
using neuroevo::env_pools;
using neuroevo::EnvPool;
using neuroevo::Guard;
using neuroevo::Object;
using neuroevo::Optional;
using neuroevo::populations;
using neuroevo::Vector;

extern "C" {

const char* neuroevo_last_error(void) { return neuroevo::LastError(); }

int neuroevo_set_threads(int32_t threads) {
  return Guard([&] { neuroevo::SetProcessThreads(threads); });
}

int neuroevo_get_threads(void) {
  int threads = 0;
  Guard([&] { threads = neuroevo::ProcessPool()->threads(); });
  return threads;
}

int64_t neuroevo_free_bytes(void) {
  int64_t bytes = -1;
  Guard([&] { bytes = neuroevo::FreeMemory(); });
  return bytes;
}

double neuroevo_busy_seconds(void) {
  double seconds = -1;
  Guard([&] { seconds = neuroevo::ProcessPool()->BusySeconds(); });
  return seconds;
}

int neuroevo_trace_start(int64_t spans_per_thread) {
  return Guard([&] { neuroevo::trace::Start(spans_per_thread); });
}

void neuroevo_trace_stop(void) { neuroevo::trace::Stop(); }

int neuroevo_trace_read(neuroevo_span* spans, int64_t n, int64_t* count, int64_t* dropped) {
  return Guard([&] {
    CheckArray("spans", spans, n);
    const neuroevo::trace::Recorded recorded = neuroevo::trace::Read();
    *count = static_cast<int64_t>(recorded.spans.size());
    *dropped = recorded.dropped;
    for (int64_t i = 0; i < std::min(n, *count); ++i) {
      const neuroevo::trace::Span& span = recorded.spans[i];
      spans[i] = {span.name,
                  span.begin_ns,
                  span.end_ns,
                  span.argument,
                  span.link,
                  span.thread,
                  static_cast<int32_t>(span.kind)};
    }
  });
}

int neuroevo_env_pool_make(const char* family, const char* const* options, int64_t n, int64_t slots,
                           neuroevo_env_pool** pool) {
  return Guard([&] {
    const auto texts = Vector(options, n);
    const auto parsed = neuroevo::ParseEnvOptions({texts.begin(), texts.end()});
    *pool = env_pools.Add(std::make_shared<EnvPool>(family, parsed, slots, neuroevo::ProcessPool()));
  });
}

void neuroevo_env_pool_free(neuroevo_env_pool* pool) { env_pools.Take(pool); }

int neuroevo_env_pool_spec(neuroevo_env_pool* pool, neuroevo_env_spec* spec) {
  return Guard([&] {
    const auto object = Object(pool);
    const neuroevo::EnvSpec& own = object->spec();
    *spec = {neuroevo::NameOf(own.observation_dtype),
             own.observation_shape.data(),
             static_cast<int64_t>(own.observation_shape.size()),
             neuroevo::NameOf(own.action_dtype),
             own.num_actions,
             own.frame_skip,
             neuroevo::NameOf(own.behavior_dtype),
             own.behavior_shape.data(),
             static_cast<int64_t>(own.behavior_shape.size()),
             own.render_shape.data(),
             static_cast<int64_t>(own.render_shape.size()),
             own.action_low.data(),
             own.action_high.data(),
             own.state_size,
             own.action_names.c_str()};
  });
}

int neuroevo_env_reset(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const uint64_t* seeds,
                       const int64_t* max_frames, const int64_t* normalizers) {
  return Guard([&] {
    Object(pool)->Reset(Vector(slots, k), Vector(seeds, k), Vector(max_frames, k), Optional(normalizers, k));
  });
}

int neuroevo_env_actions(neuroevo_env_pool* pool, const float* outputs, int64_t k, int64_t width, void* actions) {
  return Guard([&] {
    CheckArray("outputs", outputs, k);
    CheckArray("actions", actions, k);
    Object(pool)->Actions(outputs, k, width, actions);
  });
}

int neuroevo_env_step(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const void* actions, double* rewards,
                      uint8_t* dones) {
  static_assert(sizeof(bool) == 1, "dones are bytes");
  return Guard([&] {
    CheckArray("actions", actions, k);
    CheckArray("rewards", rewards, k);
    CheckArray("dones", dones, k);
    Object(pool)->Step(Vector(slots, k), actions, rewards, reinterpret_cast<bool*>(dones));
  });
}

int neuroevo_env_observe(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* observations) {
  return Guard([&] {
    CheckArray("observations", observations, k);
    Object(pool)->Observe(Vector(slots, k), observations);
  });
}

int neuroevo_env_observe_normalized(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, float* observations) {
  return Guard([&] {
    CheckArray("observations", observations, k);
    Object(pool)->ObserveNormalized(Vector(slots, k), observations);
  });
}

int neuroevo_env_set_normalizer(neuroevo_env_pool* pool, int64_t number, const double* mean, const double* std,
                                int64_t n) {
  return Guard([&] { Object(pool)->SetNormalizer(number, Vector(mean, n), Vector(std, n)); });
}

int neuroevo_env_drop_normalizers(neuroevo_env_pool* pool, const int64_t* numbers, int64_t n) {
  return Guard([&] { Object(pool)->DropNormalizers(Vector(numbers, n)); });
}

int neuroevo_env_record_behaviors(neuroevo_env_pool* pool, int64_t every, int64_t samples) {
  return Guard([&] { Object(pool)->RecordBehaviors(every, samples); });
}

int neuroevo_env_behavior(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* behaviors) {
  return Guard([&] {
    CheckArray("behaviors", behaviors, k);
    Object(pool)->Behavior(Vector(slots, k), behaviors);
  });
}

int neuroevo_env_render(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, uint8_t* screens) {
  return Guard([&] {
    CheckArray("screens", screens, k);
    Object(pool)->Render(Vector(slots, k), screens);
  });
}

int neuroevo_env_state(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, double* states) {
  return Guard([&] {
    CheckArray("states", states, k);
    Object(pool)->State(Vector(slots, k), states);
  });
}

int neuroevo_env_failure(neuroevo_env_pool* pool, int64_t slot, const char** failure) {
  return Guard([&] {
    thread_local std::string text;
    text = Object(pool)->Failure(slot);
    *failure = text.c_str();
  });
}

int neuroevo_population_make(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                             const char* dtype, int64_t float_rows, neuroevo_population** population) {
  return Guard([&] {
    std::vector<neuroevo::Network> parsed;
    for (const char* network : Vector(networks, n)) parsed.push_back(neuroevo::Network::Parse(network));
    *population = populations.Add(neuroevo::Population::Make(backend, std::move(parsed), rows, neuroevo::ProcessPool(),
                                                             neuroevo::WeightDType(dtype), float_rows));
  });
}

void neuroevo_population_free(neuroevo_population* population) { populations.Take(population); }

int neuroevo_population_dimension(neuroevo_population* population, int64_t network, int64_t* dimension) {
  return Guard([&] {
    const auto object = Object(population);
    const auto& networks = object->networks();
    neuroevo::CheckIndex("network", network, static_cast<int64_t>(networks.size()));
    *dimension = networks[network].dimension();
  });
}

int neuroevo_population_replace(neuroevo_population* population, int32_t index, const char* network) {
  return Guard([&] {
    const auto object = Object(population);
    if (network == nullptr) neuroevo::ThrowInvalid("network is null, expected a layer list");
    object->Replace(index, neuroevo::Network::Parse(network));
  });
}

int neuroevo_population_init(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                             const uint64_t* seeds) {
  return Guard([&] { Object(population)->Init(Vector(rows, k), Vector(networks, k), Vector(seeds, k)); });
}

int neuroevo_population_assign(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                               const float* thetas, int64_t stride) {
  return Guard([&] { Object(population)->Assign(Vector(rows, k), Vector(networks, k), thetas, stride); });
}

int neuroevo_population_read(neuroevo_population* population, const int64_t* rows, int64_t k, float* thetas,
                             int64_t stride) {
  return Guard([&] { Object(population)->Read(Vector(rows, k), thetas, stride); });
}

int neuroevo_population_perturb(neuroevo_population* population, const int64_t* dst, const int64_t* src, int64_t k,
                                const uint64_t* seeds, const float* scales, const int64_t* spreads) {
  return Guard([&] {
    Object(population)
        ->Perturb(Vector(dst, k), Vector(src, k), Vector(seeds, k), Vector(scales, k), Optional(spreads, k));
  });
}

int neuroevo_population_forward(neuroevo_population* population, const int64_t* rows, int64_t k,
                                const void* observations, float* outputs, const int64_t* states) {
  return Guard([&] {
    Object(population)
        ->Forward(Vector(rows, k), observations, outputs,
                  states == nullptr ? std::vector<int64_t>() : Vector(states, k));
  });
}

int neuroevo_population_clear_states(neuroevo_population* population, const int64_t* states, int64_t k) {
  return Guard([&] { Object(population)->ClearStates(Vector(states, k)); });
}

int neuroevo_population_recurrent(neuroevo_population* population, int* recurrent) {
  return Guard([&] { *recurrent = Object(population)->recurrent(); });
}

}  // extern "C"
