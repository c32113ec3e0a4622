/* The native core without TensorFlow, for ctypes, for C, and for machines that have no TensorFlow.
 *
 * Every function that can fail returns 0 on success and otherwise 1 + Error::Kind (see core/error.h);
 * neuroevo_last_error() then tells why, per thread. Handles are freed by the _free functions, which take null.
 * Calls wait until their work is done. Shapes: S slots, K slots or rows of a call, A actions, E episodes, M mutations.
 */
#ifndef NEUROEVO_C_API_NEUROEVO_H_
#define NEUROEVO_C_API_NEUROEVO_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct neuroevo_env_pool neuroevo_env_pool;
typedef struct neuroevo_population neuroevo_population;

const char* neuroevo_last_error(void);

/* How many tasks run at once in the pools made from now on. get: 0 on failure. */
int neuroevo_set_threads(int32_t threads);
int neuroevo_get_threads(void);
/* Time that this pool has spent in tasks so far, summed over its threads; -1 on failure. */
double neuroevo_busy_seconds(void);

/* Records spans of what threads do (see core/trace.h), dropping those of an earlier recording. */
int neuroevo_trace_start(int64_t spans_per_thread);
void neuroevo_trace_stop(void);
typedef struct {
  const char* name;
  int64_t begin_ns, end_ns; /* of the monotonic clock */
  int64_t argument;
  const void* link;
  int32_t thread;
  int32_t kind; /* 0: call, 1: task, 2: device */
} neuroevo_span;
/* Copies at most n spans out, and tells how many there are and how many found no room. */
int neuroevo_trace_read(neuroevo_span* spans, int64_t n, int64_t* count, int64_t* dropped);

/* options: n strings "key=value". */
int neuroevo_env_pool_make(const char* family, const char* const* options, int64_t n, int64_t slots,
                           neuroevo_env_pool** pool);
void neuroevo_env_pool_free(neuroevo_env_pool* pool);
typedef struct {
  const char* observation_dtype; /* uint8, float32, float64 */
  const int64_t* observation_shape;
  int64_t observation_rank;
  const char* action_dtype; /* int32: one of num_actions; float32: a vector of num_actions */
  int64_t num_actions;
  int64_t frame_skip;
  const char* behavior_dtype;
  const int64_t* behavior_shape;
  int64_t behavior_rank; /* 0: there is none */
  const int64_t* render_shape;
  int64_t render_rank;     /* 3: [height, width, 3], uint8; 0: cannot be rendered */
  const float* action_low; /* with float32 actions, num_actions each: what a number is meant to lie between */
  const float* action_high;
  int64_t state_size; /* 0: there is none */
} neuroevo_env_spec;
int neuroevo_env_pool_spec(neuroevo_env_pool* pool, neuroevo_env_spec* spec); /* valid as long as the pool */
/* episodes, normalizers: [K], or null for none: the caller's number of the episode, which env_take_ended tells, and the
 * number of a normalizer; -1 for none. */
int neuroevo_env_reset(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const uint64_t* seeds,
                       const int64_t* max_frames, const int64_t* episodes, const int64_t* normalizers);
/* What the environments take, from networks' outputs [K, width] (envs/actions.h). */
int neuroevo_env_actions(neuroevo_env_pool* pool, const float* outputs, int64_t k, int64_t width, void* actions);
int neuroevo_env_step(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const void* actions, double* rewards,
                      uint8_t* dones);
int neuroevo_env_observe(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* observations);
/* Observations of n values as [K, n]: (x - mean) / std, within [-5, 5], with the normalizer of the slot's episode. */
int neuroevo_env_observe_normalized(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, float* observations);
int neuroevo_env_set_normalizer(neuroevo_env_pool* pool, int64_t number, const double* mean, const double* std,
                                int64_t n);
int neuroevo_env_drop_normalizers(neuroevo_env_pool* pool, const int64_t* numbers, int64_t n);
/* Before the first reset: records every numbered episode's behavior, at its end for every = 0, else after so many
 * steps again and again, samples of them (envs/behavior_record.h). */
int neuroevo_env_record_behaviors(neuroevo_env_pool* pool, int64_t every, int64_t samples);
int neuroevo_env_behavior(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* behaviors);
int neuroevo_env_render(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, uint8_t* screens);
int neuroevo_env_state(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, double* states);
/* Why the slot's episode was broken off, where its simulation failed, else ""; valid until this thread's next call. */
int neuroevo_env_failure(neuroevo_env_pool* pool, int64_t slot, const char** failure);
typedef struct {
  int64_t count;           /* E */
  const int64_t* episodes; /* [E] */
  const char* const* failures;
  int64_t moments_size;     /* 1 + 2n for observations of n values; 0 if the pool never had a normalizer */
  const double* moments;    /* [E, moments_size]: count, sums, sums of squares; 0 where an episode had no normalizer */
  int64_t behavior_bytes;   /* of an episode; 0 if none are recorded */
  const uint8_t* behaviors; /* [E, behavior_bytes], of the environment's behavior_dtype; 0 where an episode failed */
} neuroevo_ended;
/* The numbered episodes that have ended since the last call: all if behaviors are recorded, else those with a failure
 * or a normalizer. Valid until this thread's next call. */
int neuroevo_env_take_ended(neuroevo_env_pool* pool, neuroevo_ended* ended);

/* networks: n layer lists in text form (see networks/network.h). dtype: float32 or int8; float_rows: with int8, how
 * many rows hold float32 weights too, -1 for all (see population/population.h). */
int neuroevo_population_make(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                             const char* dtype, int64_t float_rows, neuroevo_population** population);
void neuroevo_population_free(neuroevo_population* population);
int neuroevo_population_dimension(neuroevo_population* population, int64_t network, int64_t* dimension);
int neuroevo_population_init(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                             const uint64_t* seeds);
int neuroevo_population_assign(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                               const float* thetas, int64_t stride);
int neuroevo_population_read(neuroevo_population* population, const int64_t* rows, int64_t k, float* thetas,
                             int64_t stride);
int neuroevo_population_perturb(neuroevo_population* population, const int64_t* dst, const int64_t* src, int64_t k,
                                const uint64_t* seeds, const float* scales);
int neuroevo_population_forward(neuroevo_population* population, const int64_t* rows, int64_t k,
                                const void* observations, float* outputs);

/* Episodes for neuroevo_run_lanes, as the EpisodeQueueSubmit op takes them. */
typedef struct {
  int64_t episodes;
  const int64_t* genome_of; /* [E], index in [0, genomes) */
  const uint64_t* seeds;    /* [E] */
  const int64_t* max_frames;
  const int64_t* normalizers; /* [E], numbers in the env pool or -1; null for none */
  int64_t genomes;
  const int32_t* networks;     /* [genomes] */
  const int64_t* sources;      /* [genomes], row to start from or -1 */
  const int64_t* theta_of;     /* [genomes], index in [0, thetas) of weights to start from, or -1; null for none */
  const uint64_t* base_seeds;  /* [genomes] */
  const int64_t* chain_splits; /* [genomes + 1] */
  const uint64_t* chain_seeds; /* [M] */
  const float* chain_scales;   /* [M] */
  int64_t thetas;
  const float* theta_values; /* [thetas, theta_size] */
  int64_t theta_size;        /* at least D of each network that starts from one */
} neuroevo_episodes;
/* Plays the episodes on lanes * slots_per_lane slots; rows from first_row on are the lanes'. Writes returns [E] and
 * steps [E] in the order of the episodes; env_take_ended knows them by their indices. Networks with vbn need their
 * reference batch (vbn.h) before. */
int neuroevo_run_lanes(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes, int64_t slots_per_lane,
                       int64_t first_row, const neuroevo_episodes* episodes, double* returns, int64_t* steps);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_NEUROEVO_H_ */
