// The interface of an environment family. To add a family: implement Env and EnvFactory in one .cc file that ends with
// a RegisterEnvFamily call in a static initializer, and build it as a separate shared library.
#ifndef NEUROEVO_ENVS_ENV_H_
#define NEUROEVO_ENVS_ENV_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "envs/state_key.h"

namespace neuroevo {

struct EnvSpec {
  DType observation_dtype = DType::kFloat32;
  std::vector<int64_t> observation_shape;
  DType action_dtype = DType::kInt32;          // kInt32: one discrete action in [0, num_actions); kFloat32: a vector
  int64_t num_actions = 0;                     // number of discrete actions, or length of the action vector
  std::vector<float> action_low, action_high;  // bounds of each component of an action vector
  std::string action_names;                    // one line per action or vector component; or empty
  int64_t frame_skip = 1;                      // emulator frames per step
  DType behavior_dtype = DType::kFloat32;
  std::vector<int64_t> behavior_shape;  // empty: the environment has no behavior
  std::vector<int64_t> render_shape;    // [height, width, 3]; empty: it cannot be rendered
  int64_t state_size = 0;               // numbers per state; 0: the environment has no state
  bool keyed = false;                   // whether Key returns keys

  int64_t memory = 0;  // approximate bytes per environment; 0: negligible or unknown

  // Environments that one task of the thread pool steps or resets, and that it observes: as many as take at most some
  // tens of microseconds. Dispatching a task takes half a microsecond, or several if a thread must be woken up.
  int64_t steps_per_task = 1, observations_per_task = 8;

  bool discrete() const { return action_dtype == DType::kInt32; }
  int64_t observation_bytes() const;
  int64_t action_bytes() const { return discrete() ? 4 : 4 * num_actions; }
  int64_t behavior_bytes() const;  // throws if not supported
  int64_t render_bytes() const;    // throws if not supported
  int64_t state_bytes() const;     // throws if not supported
};

struct StepResult {
  double reward;
  bool done;
};

// Environment. Not thread-safe: only one thread may use it at any moment.
class Env {
 public:
  virtual ~Env() = default;

  // Start an episode whose randomness is derived entirely from seed. It is truncated after max_frames emulator frames
  // (0: the family's default limit). Afterward, Observe() returns the initial observation.
  virtual void Reset(uint64_t seed, int64_t max_frames) = 0;

  // Apply one action (int32, or float32 [num_actions]) for frame_skip frames.
  virtual StepResult Step(const void* action) = 0;

  // Write the observation, observation_bytes() long.
  virtual void Observe(void* out) const = 0;

  // Write the current behavior for novelty search, behavior_bytes() long.
  virtual void Behavior(void* out) const;

  // Return the key of the state after a step, or nothing if it has none.
  virtual std::optional<StateKey> Key() const { return std::nullopt; }

  // Write the simulation's state, state_size numbers, such as the positions and velocities of a robot's joints.
  virtual void State(double* out) const;

  // Return the reason why the episode was aborted if its simulation failed, otherwise "".
  virtual std::string Failure() const { return ""; }

  // Return how often the episode has been replayed so far after transient failures of its simulator.
  virtual int64_t Retries() const { return 0; }

  // Write the current screen as RGB, render_bytes() long.
  virtual void Render(uint8_t* rgb) const;
};

using EnvOptions = std::map<std::string, std::string>;

// Parse texts "key=value"; throws for a text without an equals sign and for a duplicate key.
EnvOptions ParseEnvOptions(const std::vector<std::string>& options);

// Factory of the environments of one pool, which holds their specification and shared constant data.
class EnvFactory {
 public:
  virtual ~EnvFactory() = default;
  virtual const EnvSpec& spec() const = 0;
  virtual std::unique_ptr<Env> Make() = 0;
};

using EnvFamily = std::function<std::unique_ptr<EnvFactory>(const EnvOptions&)>;

// Register a family under a name; the last registration wins. Returns true, so that it can initialize a static.
bool RegisterEnvFamily(const std::string& name, EnvFamily family);

// Create a family's factory. Throws for an unknown family; the message lists the known families.
std::unique_ptr<EnvFactory> MakeEnvFactory(const std::string& family, const EnvOptions& options);

// Parser of typed options, which finally rejects options that were not read. Errors name the option and its value.
class OptionReader {
 public:
  OptionReader(std::string family, EnvOptions options) : family_(std::move(family)), options_(std::move(options)) {}
  std::string String(const std::string& key, const std::string& fallback);
  std::string OneOf(const std::string& key, const std::vector<std::string>& choices);  // the first is the default
  bool Bool(const std::string& key, bool fallback);                                    // true or false
  int64_t Int(const std::string& key, int64_t fallback, int64_t low, int64_t high);    // throws outside [low, high]
  std::optional<int64_t> OptionalInt(const std::string& key, int64_t low, int64_t high);
  double Double(const std::string& key, double fallback, double low, double high);
  double Double(const std::string& key, double fallback);                        // any finite number
  std::vector<int64_t> Ints(const std::string& key, int64_t low, int64_t high);  // "1,2,3"; empty if not given

  struct Range {
    double low, high;
    bool Inside(double value) const { return low < value && value < high; }  // strictly
  };
  Range ReadRange(const std::string& key, Range fallback);  // "low,high"; either may be infinite
  void Finish() const;                                      // throws if an option is left

 private:
  std::optional<std::string> Take(const std::string& key);
  template <class... Parts>
  [[noreturn]] void Reject(const std::string& key, const std::string& text, const Parts&... expected) const;

  std::string family_;
  EnvOptions options_;
  std::string known_;  // the keys read so far
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_H_
