// The policy: what environments take as actions, from the outputs of networks.
#ifndef NEUROEVO_ENVS_ACTIONS_H_
#define NEUROEVO_ENVS_ACTIONS_H_

#include <cstdint>
#include <string>

#include "envs/env.h"

namespace neuroevo {

// Throws unless networks of this many outputs can play: of discrete actions one output each; of a vector one number
// each, or B >= 2 bins each between finite bounds.
void CheckOutputs(const EnvSpec& spec, int64_t width);

// actions (int32 [k], or float32 [k, num_actions]) from outputs [k, width], which CheckOutputs has found good.
// Discrete: the index of the first maximum. A number per action: low + (clip(x, -1, 1) + 1) / 2 * (high - low) where
// both bounds and their difference are finite, x itself where they are not. B bins per action: low + b * (high - low) /
// (B - 1), where b is the index of the first maximum of the action's B outputs. Where a number's outputs are all NaN,
// so is the number.
void ToActions(const EnvSpec& spec, const float* outputs, int64_t k, int64_t width, void* actions);

// The greedy policy: index of the first maximum of every row of outputs [n, size]. NaN is passed over; 0 if there is
// nothing else, as tf.argmax has it.
void ArgMax(const float* outputs, int64_t n, int64_t size, int32_t* actions);

// "action[2] is nan, expected a finite number" of a vector of n numbers; "" if all are finite.
std::string ActionFailure(const float* action, int64_t n);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ACTIONS_H_
