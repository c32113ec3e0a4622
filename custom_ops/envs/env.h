// The interface of an environment family. To add one: implement Env and EnvFactory in one .cc file, end it with a
// RegisterEnvFamily call in a static initializer, and build it as a shared library of its own.
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

namespace neuroevo {

struct EnvSpec {
  DType observation_dtype = DType::kFloat32;
  std::vector<int64_t> observation_shape;
  DType action_dtype = DType::kInt32;          // kInt32: one discrete action in [0, num_actions); kFloat32: a vector
  int64_t num_actions = 0;                     // number of discrete actions, or length of the action vector
  std::vector<float> action_low, action_high;  // of a vector, what each number is meant to lie between
  std::string action_names;                    // of all actions, or all numbers of a vector, one a line; or none
  int64_t frame_skip = 1;                      // emulator frames per step
  DType behavior_dtype = DType::kFloat32;
  std::vector<int64_t> behavior_shape;  // empty: the environment has no behavior
  std::vector<int64_t> render_shape;    // [height, width, 3]; empty: it cannot be rendered
  int64_t state_size = 0;               // numbers of a state; 0: the environment has none

  int64_t memory = 0;  // bytes that an environment takes, about; 0: few, or unknown

  // How many environments a task of the thread pool steps or resets, and how many it observes: as many as take some
  // tens of microseconds at most. To hand a task over takes half a microsecond, or several where a thread is to be
  // woken for it.
  int64_t steps_per_task = 1, observations_per_task = 8;

  bool discrete() const { return action_dtype == DType::kInt32; }
  int64_t observation_bytes() const;
  int64_t action_bytes() const { return discrete() ? 4 : 4 * num_actions; }
  int64_t behavior_bytes() const;  // throws where there is none
  int64_t render_bytes() const;    // throws where there is none
  int64_t state_bytes() const;     // throws where there is none
};

struct StepResult {
  double reward;
  bool done;
};

// One environment. Used by one thread at a time.
class Env {
 public:
  virtual ~Env() = default;

  // Starts an episode in which everything random follows from seed. It is cut off after max_frames emulator frames
  // (0: the family's own limit). Leaves an observation to be read.
  virtual void Reset(uint64_t seed, int64_t max_frames) = 0;

  // Applies one action (int32, or float32 [num_actions]) for frame_skip frames.
  virtual StepResult Step(const void* action) = 0;

  // Writes the observation, observation_bytes() long.
  virtual void Observe(void* out) const = 0;

  // Writes what characterizes the current state, for novelty search: behavior_bytes() long.
  virtual void Behavior(void* out) const;

  // Writes the numbers that an episode goes on from, of a simulation, state_size of them: those of a robot's joints.
  virtual void State(double* out) const;

  // Why the episode was broken off, where its simulation failed; "" where it did not.
  virtual std::string Failure() const { return ""; }

  // How often the episode was played again so far, as what simulates it had failed by chance.
  virtual int64_t Retries() const { return 0; }

  // Writes the current screen as red, green, blue: render_bytes() long.
  virtual void Render(uint8_t* rgb) const;
};

using EnvOptions = std::map<std::string, std::string>;

// From texts "key=value"; throws for one without an equals sign and for a key that comes twice.
EnvOptions ParseEnvOptions(const std::vector<std::string>& options);

// What the environments of one pool share: the specification, and anything large and constant.
class EnvFactory {
 public:
  virtual ~EnvFactory() = default;
  virtual const EnvSpec& spec() const = 0;
  virtual std::unique_ptr<Env> Make() = 0;
};

using EnvFamily = std::function<std::unique_ptr<EnvFactory>(const EnvOptions&)>;

// Registers a family under a name; the last registration wins. Returns true, so that it can initialize a static.
bool RegisterEnvFamily(const std::string& name, EnvFamily family);

// Throws for an unknown family, naming those that are known.
std::unique_ptr<EnvFactory> MakeEnvFactory(const std::string& family, const EnvOptions& options);

// Reads typed options and, at the end, rejects those that were not read. A bad value is an error that names it.
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
  std::vector<int64_t> Ints(const std::string& key, int64_t low, int64_t high);  // "1,2,3"; none where it is not given

  struct Range {
    double low, high;
    bool Inside(double value) const { return low < value && value < high; }  // strictly
  };
  Range ReadRange(const std::string& key, Range fallback);  // "low,high", both of which may be infinite
  void Finish() const;                                      // throws if an option is left

 private:
  std::optional<std::string> Take(const std::string& key);
  template <class... Parts>
  [[noreturn]] void Reject(const std::string& key, const std::string& text, const Parts&... expected) const;

  std::string family_;
  EnvOptions options_;
  std::string known_;  // the keys asked for so far
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_H_
