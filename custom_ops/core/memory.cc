#include "core/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "core/error.h"

namespace neuroevo {

namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// Read the number after `name` from a file of "name number" lines; with an empty name, the file's leading number.
std::optional<int64_t> NumberIn(const std::string& file, const std::string& name = "") {
  std::ifstream in(file);
  std::string word;
  while (!name.empty() && in >> word && word != name) {
  }
  int64_t number;
  if (in >> number) return number;
  return std::nullopt;  // also for a limit of "max"
}

// Return the bytes left under one control group's memory limit.
int64_t FreeInGroup(const std::string& folder, const char* limit, const char* usage, const char* cache) {
  const auto most = NumberIn(folder + limit), used = NumberIn(folder + usage);
  if (!most || !used) return kUnknown;
  return std::max<int64_t>(0, *most - *used + NumberIn(folder + "/memory.stat", cache).value_or(0));
}

}  // namespace

int64_t FreeMemory(const std::string& root) {
  const std::string machine = root + "/proc/meminfo", groups = root + "/sys/fs/cgroup";
  int64_t free = kUnknown;
  if (const auto available = NumberIn(machine, "MemAvailable:")) {
    free = (*available + NumberIn(machine, "SwapFree:").value_or(0)) * 1024;
  }
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // number:controllers:path; v2 lists no controllers
    std::istringstream fields(line);
    std::string number, controllers, path;
    std::getline(std::getline(std::getline(fields, number, ':'), controllers, ':'), path);
    const bool second = controllers.empty();
    if (!second && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    for (;;) {  // in a container the process's group may be mounted at the root, whatever the path is
      if (!path.empty() && path.back() == '/') path.pop_back();
      free = std::min(free, second ? FreeInGroup(groups + path, "/memory.max", "/memory.current", "inactive_file")
                                   : FreeInGroup(groups + "/memory" + path, "/memory.limit_in_bytes",
                                                 "/memory.usage_in_bytes", "total_inactive_file"));
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return free;
}

void CheckMemory(const std::string& what, int64_t bytes) {
  const int64_t free = FreeMemory();
  if (bytes <= free) return;
  ThrowInvalid(what, " need ", static_cast<double>(bytes) * 1e-9, " GB of memory, but only ",
               static_cast<double>(free) * 1e-9, " GB are free");
}

}  // namespace neuroevo
