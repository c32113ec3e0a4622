// MuJoCo models from XML files, their simulations, and MuJoCo's errors as exceptions.
#ifndef NEUROEVO_ENVS_MUJOCO_MODEL_H_
#define NEUROEVO_ENVS_MUJOCO_MODEL_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>

namespace neuroevo {

struct DeleteMujoco {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using MujocoModel = std::unique_ptr<mjModel, DeleteMujoco>;
using MujocoData = std::unique_ptr<mjData, DeleteMujoco>;

// Read and compile the file. Throws an Error with the file's name and MuJoCo's message, also for an initial state that
// MuJoCo considers unstable, since simulations start there, also after a failure.
MujocoModel LoadMujocoModel(const std::string& file);

// Create a simulation in the model's initial state. The model must outlive it.
MujocoData MakeMujocoData(const mjModel& model);

// Return the index of the body with this name. Throws if the model has no such body.
int MujocoBody(const mjModel& model, const std::string& name);

// Scope guard for our MuJoCo calls on this thread: an error is thrown as an Error instead of ending the process, and a
// warning prints nothing (mjData counts it).
class MujocoCalls {
 public:
  MujocoCalls();
  ~MujocoCalls();
  MujocoCalls(const MujocoCalls&) = delete;
  MujocoCalls& operator=(const MujocoCalls&) = delete;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_MUJOCO_MODEL_H_
