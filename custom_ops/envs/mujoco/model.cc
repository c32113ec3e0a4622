#include "envs/mujoco/model.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "core/error.h"
#include "core/fork.h"
#include "core/text.h"

namespace neuroevo {
namespace {

thread_local int our_calls = 0;  // nesting depth of MujocoCalls on this thread

// Join the lines of a MuJoCo message, which ends with an empty line, with " | ".
std::string OneLine(const std::string& message) {
  std::string all;
  for (const std::string& line : SplitLines(message)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) all += (all.empty() ? "" : " | ") + line.substr(begin);
  }
  return all;
}

// MuJoCo's default handler prints and ends the process; after a handler that returns, MuJoCo would access invalid
// memory. So this handler throws through MuJoCo's C functions, which hold no resources except the stack inside mjData,
// cleared by the next mj_resetData.
void ThrowError(const char* message) { throw Error(Error::Kind::kInternal, Concat("MuJoCo: ", OneLine(message))); }

// MuJoCo's default handler also writes a file into the current folder.
void PrintWarning(const char* message) {
  if (our_calls == 0) std::fprintf(stderr, "MuJoCo: %s\n", message);
}

// Install the process-wide handlers, unless the program, for example a Python script, has already set its own.
void InstallHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (mju_user_error == nullptr) mju_user_error = ThrowError;
    if (mju_user_warning == nullptr) mju_user_warning = PrintWarning;
  });
}

}  // namespace

MujocoCalls::MujocoCalls() { ++our_calls; }
MujocoCalls::~MujocoCalls() { --our_calls; }

MujocoModel LoadMujocoModel(const std::string& file) {
  InstallHandlers();
  static ProcessMutex mutex;  // MuJoCo's compiler keeps the last model in a global variable
  const ProcessLock lock(mutex);
  const MujocoCalls calls;
  char message[1000] = "";
  MujocoModel model(mj_loadXML(file.c_str(), nullptr, message, sizeof(message)));
  if (!model) ThrowInvalid("MuJoCo model '", file, "' cannot be loaded: ", OneLine(message));
  for (int64_t i = 0; i < model->nq; ++i) {
    if (std::abs(model->qpos0[i]) <= mjMAXVAL) continue;  // false for NaN
    ThrowInvalid("MuJoCo model '", file, "' cannot be used: joint coordinate ", i, " is initially ", model->qpos0[i],
                 ", expected at most ", mjMAXVAL, " in size");
  }
  return model;
}

MujocoData MakeMujocoData(const mjModel& model) {
  const MujocoCalls calls;
  MujocoData data(mj_makeData(&model));
  if (!data) throw Error(Error::Kind::kInternal, "out of memory for a simulation of the MuJoCo model");
  return data;
}

int MujocoBody(const mjModel& model, const std::string& name) {
  const int body = mj_name2id(&model, mjOBJ_BODY, name.c_str());
  if (body < 0) ThrowInvalid("the MuJoCo model has no body '", name, "'");
  return body;
}

}  // namespace neuroevo
