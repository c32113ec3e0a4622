// A MuJoCo model from an XML file, simulations of it, and MuJoCo's errors as exceptions.
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

// Reads and compiles the file. Throws with the file's name and MuJoCo's message, and for an initial state that MuJoCo
// would call unstable: simulations start there, also after a failure.
MujocoModel LoadMujocoModel(const std::string& file);

// A simulation in the model's initial state. The model must outlive it.
MujocoData MakeMujocoData(const mjModel& model);

// The number of a body, by its name. Throws where the model has none.
int MujocoBody(const mjModel& model, const std::string& name);

// While one lives, MuJoCo is called by us on this thread: an error there is thrown as an Error in place of ending the
// process, and a warning prints nothing (mjData counts it).
class MujocoCalls {
 public:
  MujocoCalls();
  ~MujocoCalls();
  MujocoCalls(const MujocoCalls&) = delete;
  MujocoCalls& operator=(const MujocoCalls&) = delete;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_MUJOCO_MODEL_H_
