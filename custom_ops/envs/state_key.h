// Key of an environment's state, to find episodes that are identical from some step on.
#ifndef NEUROEVO_ENVS_STATE_KEY_H_
#define NEUROEVO_ENVS_STATE_KEY_H_

#include <cstdint>

#include "core/hash.h"

namespace neuroevo {

// Two environments of a pool with equal hashes show the same observation, and given the same actions they remain
// identical until one of them is truncated. Their rewards are whole numbers, or 0 in all steps but the last, so that
// sums do not depend on where an episode is split.
struct StateKey {
  Hash128::Value hash = {};
  int64_t frames_left = 0;  // until the episode is truncated
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_STATE_KEY_H_
