/* C interface of the native core, which does not need TensorFlow; Python calls it with ctypes.
 *
 * Every function that can fail returns a neuroevo_code, NEUROEVO_OK = 0 on success; after a failure,
 * neuroevo_last_error() returns the calling thread's error message. Handles are freed by the _free functions, which
 * accept null; elsewhere a null handle is an error, and so is a null array with a nonzero length. Calls are blocking.
 *
 * All functions are thread-safe, but while a call writes a row of a population no other call may use that row. Objects
 * share ownership: an object freed while calls on it are in progress, or while a rollout uses it, is destroyed when the
 * last of these ends, so that handles may be freed in any order. A call with a freed handle is an error. In a child
 * process of fork() the parent's objects are unusable: calls with their handles are errors, except that _free,
 * rollout_close and rollout_wait_for_end return without effect. New objects of the child have their own threads.
 *
 * A call that runs out of memory, in any thread, fails with NEUROEVO_INTERNAL and the message "out of memory".
 * Afterward, environments of a reset or step must be reset again, rows to be filled are empty, recurrent states must be
 * cleared, and a rollout whose lane ran out of memory has ended; later calls are unaffected. Shapes: S slots, K slots
 * or rows of a call, A actions.
 */
#ifndef NEUROEVO_C_API_NEUROEVO_H_
#define NEUROEVO_C_API_NEUROEVO_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct neuroevo_env_pool neuroevo_env_pool;
typedef struct neuroevo_population neuroevo_population;

/* Error codes: the values of Error::Kind in core/error.h. */
typedef enum {
  NEUROEVO_OK = 0,
  NEUROEVO_INVALID_ARGUMENT = 1,
  NEUROEVO_OUT_OF_RANGE = 2,
  NEUROEVO_NOT_FOUND = 3,
  NEUROEVO_INTERNAL = 4,
  NEUROEVO_CANCELLED = 5,
  NEUROEVO_ENVIRONMENT = 6 /* one raised something, did not answer or ended; what was asked of it was right */
} neuroevo_code;
const char* neuroevo_last_error(void);

/* Number of concurrent tasks in pools created from now on. get: 0 on failure. */
int neuroevo_set_threads(int32_t threads);
int neuroevo_get_threads(void);
/* Bytes that this process can still allocate; INT64_MAX if unknown (core/memory.h). -1 on failure. */
int64_t neuroevo_free_bytes(void);
/* Seconds that the pool has spent in tasks so far, summed over its threads; -1 on failure. */
double neuroevo_busy_seconds(void);

/* Start recording trace spans (see core/trace.h); spans of an earlier recording are discarded. */
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
/* Copy at most n spans; count: number of recorded spans, dropped: number of spans that did not fit. */
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
  int64_t behavior_rank; /* 0: no behavior */
  const int64_t* render_shape;
  int64_t render_rank;     /* 3: [height, width, 3], uint8; 0: cannot be rendered */
  const float* action_low; /* with float32 actions, num_actions each: bounds of each component */
  const float* action_high;
  int64_t state_size;       /* 0: no state */
  const char* action_names; /* one line per action or vector component; empty: no names */
} neuroevo_env_spec;
int neuroevo_env_pool_spec(neuroevo_env_pool* pool, neuroevo_env_spec* spec); /* valid as long as the pool */
/* normalizers: [K], numbers set by env_set_normalizer, or -1 for no normalizer; null: all -1. */
int neuroevo_env_reset(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const uint64_t* seeds,
                       const int64_t* max_frames, const int64_t* normalizers);
/* Convert network outputs [K, width] to actions (envs/actions.h). */
int neuroevo_env_actions(neuroevo_env_pool* pool, const float* outputs, int64_t k, int64_t width, void* actions);
int neuroevo_env_step(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, const void* actions, double* rewards,
                      uint8_t* dones);
int neuroevo_env_observe(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* observations);
/* Write observations as [K, n]: (x - mean) / std, clipped to [-5, 5], with the normalizer of the slot's episode. */
int neuroevo_env_observe_normalized(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, float* observations);
int neuroevo_env_set_normalizer(neuroevo_env_pool* pool, int64_t number, const double* mean, const double* std,
                                int64_t n);
int neuroevo_env_drop_normalizers(neuroevo_env_pool* pool, const int64_t* numbers, int64_t n);
/* Record every episode's behavior for the results of a rollout (rollout.h): at the end of the episode for every = 0,
 * otherwise after each `every` steps, `samples` times (envs/behavior_record.h). Call it before the first reset. */
int neuroevo_env_record_behaviors(neuroevo_env_pool* pool, int64_t every, int64_t samples);
int neuroevo_env_behavior(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, void* behaviors);
int neuroevo_env_render(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, uint8_t* screens);
int neuroevo_env_state(neuroevo_env_pool* pool, const int64_t* slots, int64_t k, double* states);
/* Reason why the slot's episode was aborted, "" if it was not; valid until this thread's next call. */
int neuroevo_env_failure(neuroevo_env_pool* pool, int64_t slot, const char** failure);
/* networks: n layer lists in text form (see networks/network.h). dtype: float32 or int8; float_rows: with int8, number
 * of rows that also hold float32 weights, -1 for all (see population/population.h). */
int neuroevo_population_make(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                             const char* dtype, int64_t float_rows, neuroevo_population** population);
void neuroevo_population_free(neuroevo_population* population);
int neuroevo_population_dimension(neuroevo_population* population, int64_t network, int64_t* dimension);
/* Replace the network at `index` by one that is not larger than the largest initial network; rows of the old network
 * become empty. No other call may use these rows at the same time. */
int neuroevo_population_replace(neuroevo_population* population, int32_t index, const char* network);
int neuroevo_population_init(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                             const uint64_t* seeds);
int neuroevo_population_assign(neuroevo_population* population, const int64_t* rows, int64_t k, const int32_t* networks,
                               const float* thetas, int64_t stride);
int neuroevo_population_read(neuroevo_population* population, const int64_t* rows, int64_t k, float* thetas,
                             int64_t stride);
/* spreads: [K], rows of per-weight factors of the scales (see population/population.h), or -1; null: all -1. */
int neuroevo_population_perturb(neuroevo_population* population, const int64_t* dst, const int64_t* src, int64_t k,
                                const uint64_t* seeds, const float* scales, const int64_t* spreads);
/* states: [K], distinct (see population/population.h); may be null if no network is recurrent. */
int neuroevo_population_forward(neuroevo_population* population, const int64_t* rows, int64_t k,
                                const void* observations, float* outputs, const int64_t* states);
int neuroevo_population_clear_states(neuroevo_population* population, const int64_t* states, int64_t k);
int neuroevo_population_recurrent(neuroevo_population* population, int* recurrent);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_NEUROEVO_H_ */
