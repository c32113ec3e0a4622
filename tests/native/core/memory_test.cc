// Free memory of the machine, and of control groups of both versions, read from their files.
#include "core/memory.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr int64_t kMiB = 1 << 20;

// A folder with files of /proc and /sys.
class Root {
 public:
  Root() {
    std::string name = "/tmp/neuroevo-memory-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((path_ + file).substr(0, (path_ + file).rfind('/')));
    std::ofstream(path_ + file) << text;
  }
  void Machine(int64_t available, int64_t swap) {
    Write("/proc/meminfo", "MemTotal:       24684084 kB\nMemFree:         9999999 kB\nMemAvailable:   " +
                               std::to_string(available / 1024) +
                               " kB\nSwapTotal:      0 kB\nSwapFree:       " + std::to_string(swap / 1024) + " kB\n");
  }
  void First(const std::string& group, int64_t limit, int64_t usage, int64_t cache) {
    const std::string folder = "/sys/fs/cgroup/memory" + group;
    Write(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    Write(folder + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    Write(folder + "/memory.stat", "cache 1\ninactive_file 7\ntotal_inactive_file " + std::to_string(cache) + "\n");
  }
  void Second(const std::string& group, const std::string& limit, int64_t usage, int64_t cache) {
    const std::string folder = "/sys/fs/cgroup" + group;
    Write(folder + "/memory.max", limit + "\n");
    Write(folder + "/memory.current", std::to_string(usage) + "\n");
    Write(folder + "/memory.stat", "anon 5\ninactive_file " + std::to_string(cache) + "\nactive_file 3\n");
  }
  int64_t Free() const { return FreeMemory(path_); }

 private:
  std::string path_;
};

}  // namespace

TEST(ThisMachine) {
  CHECK(FreeMemory() > 0);
  CHECK(FreeMemory() < int64_t{1} << 50);
}

TEST(NothingIsKnown) { CHECK_EQ(Root().Free(), std::numeric_limits<int64_t>::max()); }

TEST(TheMachinesMemoryAndSwap) {
  Root root;
  root.Machine(800 * kMiB, 0);
  CHECK_EQ(root.Free(), 800 * kMiB);
  root.Machine(800 * kMiB, 50 * kMiB);
  CHECK_EQ(root.Free(), 850 * kMiB);
}

TEST(AGroupOfTheSecondVersion) {
  Root root;
  root.Machine(8000 * kMiB, 0);
  root.Write("/proc/self/cgroup", "0::/a.slice/b.scope\n");
  root.Second("/a.slice/b.scope", "max", 100 * kMiB, 0);
  CHECK_EQ(root.Free(), 8000 * kMiB);
  root.Second("/a.slice/b.scope", std::to_string(1500 * kMiB), 600 * kMiB, 100 * kMiB);
  CHECK_EQ(root.Free(), 1000 * kMiB);
  root.Second("/a.slice", std::to_string(900 * kMiB), 600 * kMiB, 0);  // an ancestor has less
  CHECK_EQ(root.Free(), 300 * kMiB);
  root.Second("/a.slice", std::to_string(500 * kMiB), 600 * kMiB, 0);  // lowered below what is used
  CHECK_EQ(root.Free(), 0);
}

TEST(AGroupOfTheFirstVersion) {
  Root root;
  root.Machine(8000 * kMiB, 0);
  root.Write("/proc/self/cgroup", "9:cpu,cpuacct:/other\n4:hugetlb,memory:/docker/1f\n0::/\n");
  root.First("/docker/1f", 9223372036854771712, 100 * kMiB, 0);  // the kernel's value for no limit
  CHECK_EQ(root.Free(), 8000 * kMiB);
  root.First("/docker/1f", 1500 * kMiB, 600 * kMiB, 100 * kMiB);
  CHECK_EQ(root.Free(), 1000 * kMiB);
}

// In a container the path is that of the host, but the group is mounted at the root.
TEST(AContainer) {
  for (const bool second : {false, true}) {
    Root root;
    root.Machine(8000 * kMiB, 0);
    root.Write("/proc/self/cgroup", second ? "0::/../..\n" : "4:memory:/docker/1f\n");
    if (second) root.Second("", std::to_string(1500 * kMiB), 600 * kMiB, 0);
    if (!second) root.First("", 1500 * kMiB, 600 * kMiB, 0);
    CHECK_EQ(root.Free(), 900 * kMiB);
  }
}
