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

thread_local int our_calls = 0;  // how deep this thread is in MujocoCalls

// MuJoCo's messages are of several lines, the last of which is empty: as one, with " | " between.
std::string OneLine(const std::string& message) {
  std::string all;
  for (const std::string& line : SplitLines(message)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) all += (all.empty() ? "" : " | ") + line.substr(begin);
  }
  return all;
}

// MuJoCo's default prints and ends the process; a handler that returns lets it run on into memory that is not there.
// So this one throws, through MuJoCo's C functions: they hold nothing but the stack inside mjData, which the next
// mj_resetData empties.
void ThrowError(const char* message) { throw Error(Error::Kind::kInternal, Concat("MuJoCo: ", OneLine(message))); }

// MuJoCo's default also writes a file into the current folder.
void PrintWarning(const char* message) {
  if (our_calls == 0) std::fprintf(stderr, "MuJoCo: %s\n", message);
}

// The handlers are the process's. Whoever set them before us keeps them: a Python program that does has its reasons.
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
  static ProcessMutex mutex;  // the compiler keeps the last model that it read in a variable of its own
  const ProcessLock lock(mutex);
  const MujocoCalls calls;
  char message[1000] = "";
  MujocoModel model(mj_loadXML(file.c_str(), nullptr, message, sizeof(message)));
  if (!model) ThrowInvalid("MuJoCo model '", file, "' cannot be loaded: ", OneLine(message));
  for (int64_t i = 0; i < model->nq; ++i) {
    if (std::abs(model->qpos0[i]) <= mjMAXVAL) continue;  // which a NaN is not
    ThrowInvalid("MuJoCo model '", file, "' cannot be used: joint coordinate ", i, " is initially ", model->qpos0[i],
                 ", expected at most ", mjMAXVAL, " in size");
  }
  return model;
}

MujocoData MakeMujocoData(const mjModel& model) {
  const MujocoCalls calls;
  MujocoData data(mj_makeData(&model));
  if (!data) throw Error(Error::Kind::kInternal, "there is no memory for another simulation of the MuJoCo model");
  return data;
}

int MujocoBody(const mjModel& model, const std::string& name) {
  const int body = mj_name2id(&model, mjOBJ_BODY, name.c_str());
  if (body < 0) ThrowInvalid("the MuJoCo model has no body '", name, "'");
  return body;
}

}  // namespace neuroevo
