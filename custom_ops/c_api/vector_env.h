/* C interface of environments with Gymnasium's vector API (envs/vector_env.h).
 *
 * Codes and errors are those of neuroevo.h. Shapes: N environments, I infos, A actions.
 */
#ifndef NEUROEVO_C_API_VECTOR_ENV_H_
#define NEUROEVO_C_API_VECTOR_ENV_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct neuroevo_vector_env neuroevo_vector_env;

/* options: n strings "key=value". autoreset: "NextStep", "SameStep" or "Disabled". max_steps: time limit of the
 * episodes, 0 for the family's default. threads: size of a separate pool, 0 for the process's pool. */
int neuroevo_vector_make(const char* family, const char* const* options, int64_t n, int64_t num_envs,
                         const char* autoreset, int64_t max_steps, int32_t threads, neuroevo_vector_env** env);
void neuroevo_vector_free(neuroevo_vector_env* env);

typedef struct {
  const char* observation_dtype; /* uint8, float32, float64 */
  const int64_t* observation_shape;
  int64_t observation_rank;
  const char* action_dtype; /* int32: one of num_actions; float32: a vector of num_actions */
  int64_t num_actions;
  const float* action_low; /* of a vector, num_actions each */
  const float* action_high;
  int64_t frame_skip;
  const int64_t* render_shape;
  int64_t render_rank;           /* 3: [height, width, 3], uint8; 0: cannot be rendered */
  const char* const* info_names; /* [I] */
  int64_t infos;
} neuroevo_vector_spec;
int neuroevo_vector_get_spec(neuroevo_vector_env* env, neuroevo_vector_spec* spec); /* valid as long as env */

/* Output arrays; see VectorEnv::Output. */
typedef struct {
  void* observations;       /* [N, *observation_shape] */
  double* rewards;          /* [N] */
  uint8_t* terminations;    /* [N] */
  uint8_t* truncations;     /* [N] */
  uint8_t* failures;        /* [N] */
  int64_t* infos;           /* [I, N] */
  void* final_observations; /* [N, *observation_shape], written only with SameStep, for episodes that ended */
  int64_t* final_infos;     /* [I, N], likewise */
} neuroevo_vector_output;

/* mask, seeded: [N], 0 means false. seeds: [N]. */
int neuroevo_vector_reset(neuroevo_vector_env* env, const uint8_t* mask, const uint8_t* seeded, const uint64_t* seeds,
                          const neuroevo_vector_output* output);
/* actions: int64 [N] in [0, num_actions), or float32 [N, A]. */
int neuroevo_vector_step(neuroevo_vector_env* env, const void* actions, const neuroevo_vector_output* output);
int neuroevo_vector_render(neuroevo_vector_env* env, uint8_t* screens);
/* Reason why this environment's last finished episode was aborted, else ""; valid until this thread's next call. */
int neuroevo_vector_failure(neuroevo_vector_env* env, int64_t index, const char** failure);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_VECTOR_ENV_H_ */
