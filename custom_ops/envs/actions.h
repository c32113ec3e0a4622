// The policy: conversion of network outputs to actions.
#ifndef NEUROEVO_ENVS_ACTIONS_H_
#define NEUROEVO_ENVS_ACTIONS_H_

#include <cstdint>
#include <string>

#include "envs/env.h"

namespace neuroevo {

// Throw unless the network's output size is valid: one output per discrete action; for action vectors one output per
// component, or B >= 2 bins per component, which must have finite bounds.
void CheckOutputs(const EnvSpec& spec, int64_t width);

// Compute actions (int32 [k], or float32 [k, num_actions]) from outputs [k, width], which CheckOutputs must accept.
// Discrete: the index of the first maximum. One output per component: low + (clip(x, -1, 1) + 1) / 2 * (high - low) if
// both bounds and their difference are finite, otherwise x itself. B bins per component: low + b * (high - low) / (B -
// 1), where b is the index of the first maximum of the component's B outputs. If all outputs of a component are NaN, so
// is the component.
void ToActions(const EnvSpec& spec, const float* outputs, int64_t k, int64_t width, void* actions);

// Greedy policy: write the index of the first maximum of each row of outputs [n, size], ignoring NaN; 0 if all are NaN,
// like tf.argmax.
void ArgMax(const float* outputs, int64_t n, int64_t size, int32_t* actions);

// Return "action[2] is nan, expected a finite number" for a vector of n components; "" if all are finite.
std::string ActionFailure(const float* action, int64_t n);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ACTIONS_H_
