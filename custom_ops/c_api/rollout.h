/* Episodes played by the lane runner (rollout/lane_runner.h), for ctypes and for C. Codes and errors: neuroevo.h.
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

/* What to play, as rollout/submission.h has it, whose checks hold; genomes are known by their indices, and so are
 * episodes. */
typedef struct {
  int64_t num_episodes;               /* E */
  const int64_t* episode_genomes;     /* [E], index in [0, G) */
  const uint64_t* episode_seeds;      /* [E] */
  const int64_t* episode_max_frames;  /* [E] */
  const int64_t* episode_normalizers; /* [E], numbers in the env pool or -1; null for none */
  int64_t num_genomes;                /* G */
  const int32_t* genome_networks;     /* [G] */
  const int64_t* genome_sources;      /* [G], row to start from or -1 */
  const uint64_t* genome_seeds;       /* [G], of the initial weights, without source and theta */
  const int64_t* genome_thetas;       /* [G], index in [0, V) of weights to start from, or -1; null for none */
  int64_t num_mutations;              /* M */
  const int64_t* chain_splits;        /* [G + 1], ascending from 0 to M */
  const uint64_t* chain_seeds;        /* [M] */
  const float* chain_scales;          /* [M] */
  int64_t num_thetas;                 /* V */
  const float* thetas;                /* [V, theta_size] */
  int64_t theta_size;                 /* at least D of each network that starts from one */
} neuroevo_episodes;

/* What came of them, in the order of the episodes. */
typedef struct {
  int64_t count;                  /* E */
  const double* returns;          /* [E] */
  const int64_t* steps;           /* [E] */
  const char* const* failures;    /* [E], why an episode was broken off; "" where it was not */
  int64_t observation_sums_size;  /* 1 + 2n for observations of n values; 0 if no episode had a normalizer */
  const double* observation_sums; /* [E, that]: count, sums, sums of squares; 0 where an episode had no normalizer */
  int64_t behavior_bytes;         /* of an episode; 0 if none are recorded */
  const uint8_t* behaviors;       /* [E, that], of the environment's behavior_dtype; 0 where an episode failed */
} neuroevo_results;

/* Plays the episodes on lanes * slots_per_lane slots; rows from first_row on are the lanes'. Networks with vbn need
 * their reference batch (vbn.h) before. The results are freed by _free, which takes null. */
int neuroevo_run_lanes(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes, int64_t slots_per_lane,
                       int64_t first_row, const neuroevo_episodes* episodes, const neuroevo_results** results);
void neuroevo_results_free(const neuroevo_results* results);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_ROLLOUT_H_ */
