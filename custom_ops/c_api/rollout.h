/* C interface of rollouts: lanes that play the episodes of a queue (rollout/lane_runner.h). Codes and errors:
 * neuroevo.h.
 *
 * Shapes: E episodes, G genomes, M mutations, V thetas.
 */
#ifndef NEUROEVO_C_API_ROLLOUT_H_
#define NEUROEVO_C_API_ROLLOUT_H_

#include <stdint.h>

#include "c_api/neuroevo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct neuroevo_rollout neuroevo_rollout;

/* Episodes to play; rollout/submission.h describes and checks the fields. */
typedef struct {
  int64_t num_episodes;               /* E */
  const int64_t* episode_ids;         /* [E], 0 or more; null for 0, 1, ..., E - 1 */
  const int64_t* episode_genomes;     /* [E], index in [0, G) */
  const uint64_t* episode_seeds;      /* [E] */
  const int64_t* episode_max_frames;  /* [E] */
  const int64_t* episode_normalizers; /* [E], numbers of normalizers in the env pool or -1; null: all -1 */
  int64_t num_genomes;                /* G */
  const int64_t* genome_ids;          /* [G], 0 or more, equal ids for equal weights; null for 0, 1, ..., G - 1 */
  const int32_t* genome_networks;     /* [G] */
  const int64_t* genome_sources;      /* [G], row to start from or -1 */
  const uint64_t* genome_seeds;       /* [G], seeds of the initial weights; unused with a source or theta */
  const int64_t* genome_thetas;       /* [G], index in [0, V) of weights to start from, or -1; null: all -1 */
  int64_t num_mutations;              /* M */
  const int64_t* chain_splits;        /* [G + 1], ascending from 0 to M */
  const uint64_t* chain_seeds;        /* [M] */
  const float* chain_scales;          /* [M] */
  const int64_t* chain_spreads;       /* [M], row of per-weight factors of the scale, or -1; null: all -1 */
  int64_t num_thetas;                 /* V */
  const float* thetas;                /* [V, theta_size] */
  int64_t theta_size;                 /* at least D of each network that starts from a theta */
} neuroevo_episodes;

/* Results of episodes, in the order in which they ended. */
typedef struct {
  int64_t count;                  /* E */
  const int64_t* ids;             /* [E] */
  const double* returns;          /* [E] */
  const int64_t* steps;           /* [E] */
  const char* const* failures;    /* [E], why an episode was aborted; "" if it was not */
  const int64_t* retries;         /* [E], how often an episode was replayed after a failure of its environment */
  int64_t observation_sums_size;  /* 1 + 2n for observations of n values; 0 if no episode had a normalizer */
  const double* observation_sums; /* [E, size]: count, sums, sums of squares; 0 for episodes without a normalizer */
  int64_t behavior_bytes;         /* per episode; 0 if behaviors are not recorded */
  const uint8_t* behaviors;       /* [E, bytes], of the environment's behavior_dtype; 0 for failed episodes */
  int64_t total_steps;            /* of all lanes since the rollout started, including unfinished episodes */
} neuroevo_results;

/* Start lanes * slots_per_lane slots, which wait for episodes; the lanes own the rows from first_row on. Networks with
 * vbn need their reference batch (vbn.h) first. The rollout shares ownership of the pool and the population. */
int neuroevo_rollout_start(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes,
                           int64_t slots_per_lane, int64_t first_row, neuroevo_rollout** rollout);
/* Append episodes. Lower priority numbers are played first. If a lane has failed, fails with the lane's error. */
int neuroevo_rollout_submit(neuroevo_rollout* rollout, const neuroevo_episodes* episodes, int64_t priority);
/* Return the results since the last call. Waits until there are `count` results, the rollout is closed, or the time has
 * elapsed. If a lane has failed, fails with the lane's error. After any other failure the next call returns the results
 * without waiting. Thread-safe: each result is returned once. The results are freed by _free, which accepts null.
 */
int neuroevo_rollout_results(neuroevo_rollout* rollout, int64_t count, int64_t milliseconds,
                             const neuroevo_results** results);
void neuroevo_results_free(const neuroevo_results* results);
/* Stop the lanes within a step; running episodes are dropped. */
int neuroevo_rollout_close(neuroevo_rollout* rollout);
/* Wait for a closed rollout's lanes; ended is 0 if they have not ended after this time. */
int neuroevo_rollout_wait_for_end(neuroevo_rollout* rollout, int64_t milliseconds, int* ended);
/* Close the rollout and wait for its lanes; if calls on it are in progress, the last of them does so. */
void neuroevo_rollout_free(neuroevo_rollout* rollout);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_ROLLOUT_H_ */
