/* Rollouts: lanes that play the episodes of a queue (rollout/lane_runner.h), for ctypes and for C. Codes and errors:
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

/* What to play, as rollout/submission.h has it, whose checks hold. */
typedef struct {
  int64_t num_episodes;               /* E */
  const int64_t* episode_ids;         /* [E], 0 or more; null for 0, 1, ..., E - 1 */
  const int64_t* episode_genomes;     /* [E], index in [0, G) */
  const uint64_t* episode_seeds;      /* [E] */
  const int64_t* episode_max_frames;  /* [E] */
  const int64_t* episode_normalizers; /* [E], numbers in the env pool or -1; null for none */
  int64_t num_genomes;                /* G */
  const int64_t* genome_ids;          /* [G], 0 or more, equal ones for equal weights; null for 0, 1, ..., G - 1 */
  const int32_t* genome_networks;     /* [G] */
  const int64_t* genome_sources;      /* [G], row to start from or -1 */
  const uint64_t* genome_seeds;       /* [G], of the initial weights, without source and theta */
  const int64_t* genome_thetas;       /* [G], index in [0, V) of weights to start from, or -1; null for none */
  int64_t num_mutations;              /* M */
  const int64_t* chain_splits;        /* [G + 1], ascending from 0 to M */
  const uint64_t* chain_seeds;        /* [M] */
  const float* chain_scales;          /* [M] */
  const int64_t* chain_spreads;       /* [M], row that multiplies a scale weight by weight or -1; null for none */
  int64_t num_thetas;                 /* V */
  const float* thetas;                /* [V, theta_size] */
  int64_t theta_size;                 /* at least D of each network that starts from one */
} neuroevo_episodes;

/* What came of episodes, in the order in which they ended. */
typedef struct {
  int64_t count;                  /* E */
  const int64_t* ids;             /* [E] */
  const double* returns;          /* [E] */
  const int64_t* steps;           /* [E] */
  const char* const* failures;    /* [E], why an episode was broken off; "" where it was not */
  const int64_t* retries;         /* [E], how often an episode was played again, as its environment had failed */
  int64_t observation_sums_size;  /* 1 + 2n for observations of n values; 0 if no episode had a normalizer */
  const double* observation_sums; /* [E, that]: count, sums, sums of squares; 0 where an episode had no normalizer */
  int64_t behavior_bytes;         /* of an episode; 0 if none are recorded */
  const uint8_t* behaviors;       /* [E, that], of the environment's behavior_dtype; 0 where an episode failed */
  int64_t total_steps;            /* of all lanes since the rollout began, unfinished episodes included */
} neuroevo_results;

/* Starts lanes * slots_per_lane slots, which wait for episodes; rows from first_row on are the lanes'. Networks with
 * vbn need their reference batch (vbn.h) before. The rollout keeps the pool and the population as long as it lives. */
int neuroevo_rollout_start(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes,
                           int64_t slots_per_lane, int64_t first_row, neuroevo_rollout** rollout);
/* Appends episodes. Those of a lower priority number are played first. Fails of what a lane has failed of. */
int neuroevo_rollout_submit(neuroevo_rollout* rollout, const neuroevo_episodes* episodes, int64_t priority);
/* The results since the last call. Waits until there are `count` of them, the rollout is closed, or the time is over.
 * Fails of what a lane has failed of. After another failure the next call returns what there was, without waiting.
 * Several threads may call it: each result is given to one of them. The results are freed by _free, which takes null.
 */
int neuroevo_rollout_results(neuroevo_rollout* rollout, int64_t count, int64_t milliseconds,
                             const neuroevo_results** results);
void neuroevo_results_free(const neuroevo_results* results);
/* Has the lanes end within a step, dropping what they play. */
int neuroevo_rollout_close(neuroevo_rollout* rollout);
/* Waits for a closed rollout's lanes; ended is 0 if they have not ended after this time. */
int neuroevo_rollout_wait_for_end(neuroevo_rollout* rollout, int64_t milliseconds, int* ended);
/* Closes it and waits for its lanes, or leaves that to the last of the calls on it that are in progress. */
void neuroevo_rollout_free(neuroevo_rollout* rollout);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_ROLLOUT_H_ */
