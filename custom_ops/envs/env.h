// The interface of an environment family. To add one: implement Env and EnvFactory in one .cc file, end it with a
// RegisterEnvFamily call in a static initialiser, and build it as a shared library of its own.
#ifndef NEUROEVO_ENVS_ENV_H_
#define NEUROEVO_ENVS_ENV_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace neuroevo {

struct EnvSpec {
  DType observation_dtype = DType::kFloat32;
  std::vector<int64_t> observation_shape;
  DType action_dtype = DType::kInt32;  // kInt32: one discrete action in [0, num_actions); kFloat32: a vector
  int64_t num_actions = 0;             // number of discrete actions, or length of the action vector
  int64_t frame_skip = 1;              // emulator frames per step

  bool discrete() const { return action_dtype == DType::kInt32; }
  int64_t observation_bytes() const;
  int64_t action_bytes() const { return discrete() ? 4 : 4 * num_actions; }
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

// Registers a family under a name; the last registration wins. Returns true, so that it can initialise a static.
bool RegisterEnvFamily(const std::string& name, EnvFamily family);

// Throws for an unknown family, naming those that are known.
std::unique_ptr<EnvFactory> MakeEnvFactory(const std::string& family, const EnvOptions& options);

// Reads typed options and, at the end, rejects those that nobody asked for.
class OptionReader {
 public:
  OptionReader(std::string family, EnvOptions options) : family_(std::move(family)), options_(std::move(options)) {}
  std::string String(const std::string& key, const std::string& fallback);
  int64_t Int(const std::string& key, int64_t fallback, int64_t low, int64_t high);  // throws outside [low, high]
  void Finish() const;                                                               // throws if an option is left

 private:
  std::string family_;
  EnvOptions options_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_H_
