// Share of a GPU's memory bandwidth that forward calls of populations of different networks reach, their layers alone,
// shared rows, and decoding of weights. Requires a GPU; no emulator takes part.
//
//   build/gpu/bench/gpu_bench [--json FILE] [--seconds S] [--small]
//
// Copying: a large copy within the GPU's memory, bytes read and bytes written both counted. A forward call's bytes are
// its networks' weights, each once; its share is their bytes a second over those of the copy. queued: calls one behind
// the other in a stream, as on a busy GPU; alone: a call on an idle GPU, from its first kernel queued to its last one's
// end. Rows go around the whole population, so that no call finds weights in a cache. Medians.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"
#include "gpu_calls.h"
#include "json_lines.h"
#include "machine.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kConvolutions[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu";
const char kSmallNetwork[] = "input uint8 12 12 4; conv 8 4 4 4 same 1.0; bias; relu; dense 16 1.0; bias; relu";

struct Settings {
  std::string json;
  double seconds = 0.4;  // of each figure
  bool small = false;
};

struct Point {
  int64_t k;
  double seconds;
};

// seconds = fixed + each * k, with the least sum of squares of relative errors.
struct Line {
  double fixed, each, worst;
};
Line Fit(const std::vector<Point>& points) {
  double s = 0, sk = 0, skk = 0, st = 0, skt = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds), k = static_cast<double>(point.k);
    s += weight;
    sk += weight * k;
    skk += weight * k * k;
    st += weight * point.seconds;
    skt += weight * k * point.seconds;
  }
  Line line = {0, 0, 0};
  line.each = (s * skt - sk * st) / (s * skk - sk * sk);
  line.fixed = (st - line.each * sk) / s;
  for (const Point& point : points) {
    const double fitted = line.fixed + line.each * static_cast<double>(point.k);
    line.worst = std::max(line.worst, std::fabs(fitted / point.seconds - 1));
  }
  return line;
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings), lines_(settings.json) {}

  void Run() {
    Machine();
    const std::vector<std::pair<DType, const char*>> dtypes = {{DType::kFloat32, "float32"}, {DType::kInt8, "int8"}};
    for (const auto& [dtype, name] : dtypes) Forwards(dtype, name);
    for (const auto& [dtype, name] : dtypes) Layers(dtype, name);
    for (const auto& [dtype, name] : dtypes) Independence(dtype, name);
    for (const auto& [dtype, name] : dtypes) FromHost(dtype, name);
    Making();
  }

 private:
  // Rows of most populations.
  int64_t Many() const { return settings_.small ? 8 : std::min<int64_t>(1024, Fitting()); }
  // How many rows of LargeModel the card has room for, with room to spare.
  static int64_t Fitting() { return device::FreeBytes() * 4 / 5 / (4052658 * 4); }
  std::string LargeModel() const { return settings_.small ? kSmallNetwork : kLargeModel; }

  void Machine() {
    lines_.Write(JsonObject()
                     .Add("figure", "machine")
                     .Add("device", device::Name())
                     .Add("memory_gb", static_cast<double>(device::TotalBytes()) * 1e-9));
    std::printf("%s, %.0f GB\n", device::Name().c_str(), static_cast<double>(device::TotalBytes()) * 1e-9);
    copy_ = CopyBandwidth(settings_.small ? 1 << 20 : int64_t{4} << 30, settings_.seconds);
    const auto [in, out] = BusBandwidth(settings_.small ? 1 << 20 : 256 << 20, settings_.seconds);
    lines_.Write(JsonObject()
                     .Add("figure", "copy")
                     .Add("within_gb_s", copy_ * 1e-9)
                     .Add("in_gb_s", in * 1e-9)
                     .Add("out_gb_s", out * 1e-9));
    std::printf("copying: within the GPU %.0f GB/s (read + written), to it %.1f GB/s, from it %.1f GB/s\n\n",
                copy_ * 1e-9, in * 1e-9, out * 1e-9);
    std::printf("%-34s %-8s %5s %6s %10s %9s %8s %7s\n", "what", "dtype", "K", "rows", "queued us", "alone us", "GB/s",
                "share");
  }

  // Measures a call and notes it. Seconds of a queued call.
  double Note(const std::string& what, const char* dtype, DeviceCalls* calls, int64_t k, Play play) {
    const CallTimes times = calls->Time(k, play, settings_.seconds);
    const int64_t rows = play == Play::kOneRow ? 1 : k;
    const double rate = static_cast<double>(rows * calls->weight_bytes()) / times.queued;
    lines_.Write(JsonObject()
                     .Add("figure", what)
                     .Add("dtype", dtype)
                     .Add("k", k)
                     .Add("rows", calls->rows())
                     .Add("rows_played", rows)
                     .Add("queued_us", times.queued * 1e6)
                     .Add("alone_us", times.alone * 1e6)
                     .Add("gb_s", rate * 1e-9)
                     .Add("share", rate / copy_));
    std::printf("%-34s %-8s %5lld %6lld %10.1f %9.1f %8.0f %6.1f%%\n", what.c_str(), dtype, static_cast<long long>(k),
                static_cast<long long>(calls->rows()), times.queued * 1e6, times.alone * 1e6, rate * 1e-9,
                100 * rate / copy_);
    std::fflush(stdout);
    return times.queued;
  }

  void Forwards(DType dtype, const char* name) {
    DeviceCalls calls(LargeModel(), dtype, Many());
    std::vector<Point> points;
    for (int64_t k : {1, 8, 32, 64, 128, 256, 512, 1024}) {
      if (k <= Many()) points.push_back({k, Note("forward", name, &calls, k, Play::kOwnRows)});
    }
    const Line line = Fit(points);
    lines_.Write(JsonObject()
                     .Add("figure", "affine")
                     .Add("dtype", name)
                     .Add("fixed_us", line.fixed * 1e6)
                     .Add("each_us", line.each * 1e6)
                     .Add("worst_error", line.worst));
    std::printf("%-34s %-8s %.1f us + K * %.3f us (at worst %.0f%% off)\n", "affine in K", name, line.fixed * 1e6,
                line.each * 1e6, 100 * line.worst);
    Note("forward, all on one row", name, &calls, std::min<int64_t>(256, Many()), Play::kOneRow);
  }

  // Layers as networks of their own. The dense layer is 98% of the weights.
  void Layers(DType dtype, const char* name) {
    const std::string input = dtype == DType::kInt8 ? "input uint8 " : "input float32 ";
    const std::string dense =
        input + (settings_.small ? "72; dense 16 1.0; bias; relu" : "7744; dense 512 1.0; bias; relu");
    {
      DeviceCalls calls(dense, dtype, Many());
      for (int64_t k : {1, 64, 256, 1024}) {
        if (k <= Many()) Note("dense layer", name, &calls, k, Play::kOwnRows);
      }
      const int64_t k = std::min<int64_t>(256, Many());
      const double own = Note("dense layer, a row each", name, &calls, k, Play::kOwnRows);
      const double one = Note("dense layer, all on one row", name, &calls, k, Play::kOneRow);
      lines_.Write(JsonObject().Add("figure", "shared").Add("dtype", name).Add("k", k).Add("ratio", own / one));
      std::printf("%-34s %-8s %.1f x\n", "one row faster than many by", name, own / one);
    }
    DeviceCalls calls(input + "512; dense 18 0.1; bias", dtype, Many());
    Note("output layer", name, &calls, std::min<int64_t>(256, Many()), Play::kOwnRows);
    if (settings_.small) return;
    DeviceCalls convolutions(kConvolutions, dtype, Many());
    for (int64_t k : {1, 256, 1024}) Note("convolutions", name, &convolutions, k, Play::kOwnRows);
  }

  // A call's time must not depend on how many rows there are, nor on where among them its own are.
  void Independence(DType dtype, const char* name) {
    const int64_t k = std::min<int64_t>(256, Many() / 2);
    std::vector<double> times;
    for (int64_t rows : {k, 2 * k, 4 * k, 12 * k}) {
      if (!settings_.small && rows > Fitting()) continue;
      DeviceCalls calls(LargeModel(), dtype, rows);
      if (rows > k) times.push_back(Note("forward, rows in order", name, &calls, k, Play::kOwnRows));
      times.push_back(Note("forward, rows anywhere", name, &calls, k, Play::kScattered));
    }
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    lines_.Write(
        JsonObject().Add("figure", "independence").Add("dtype", name).Add("k", k).Add("spread", *most / *least - 1));
    std::printf("%-34s %-8s %.1f%%\n", "spread over rows in all and order", name, 100 * (*most / *least - 1));
  }

  // As the lane runner calls it: observations and outputs in the host's memory.
  void FromHost(DType dtype, const char* name) {
    DeviceCalls calls(LargeModel(), dtype, settings_.small ? 8 : 256);
    for (int64_t k : {1, 8, 32, 64, 128, 256}) {
      if (k > calls.rows()) continue;
      const double seconds = calls.TimeFromHost(k, settings_.seconds);
      lines_.Write(JsonObject().Add("figure", "from_host").Add("dtype", name).Add("k", k).Add("us", seconds * 1e6));
      std::printf("%-34s %-8s %5lld %6lld %10s %9.1f\n", "from and to the host", name, static_cast<long long>(k),
                  static_cast<long long>(calls.rows()), "", seconds * 1e6);
    }
  }

  void Making() {
    for (const auto& [dtype, name] :
         {std::make_pair(DType::kFloat32, "float32"), std::make_pair(DType::kInt8, "int8")}) {
      const int64_t rows = settings_.small ? 4 : 64;
      const MakeTimes times = TimeMaking(LargeModel(), dtype, rows, settings_.seconds);
      const double bytes = static_cast<double>(Network::Parse(LargeModel()).dimension()) * 4;
      lines_.Write(JsonObject()
                       .Add("figure", "making")
                       .Add("dtype", name)
                       .Add("rows", rows)
                       .Add("init_us", times.init * 1e6)
                       .Add("perturb_us", times.perturb * 1e6)
                       .Add("perturb_one_us", times.perturb_one * 1e6)
                       .Add("chain_us", times.chain * 1e6)
                       .Add("init_gb_s", bytes / times.init * 1e-9)
                       .Add("perturb_gb_s", 2 * bytes / times.perturb * 1e-9));
      std::printf(
          "making weights, %-17s %-8s us a row: init %.1f (%.0f GB/s), perturb %.1f (%.0f GB/s read + "
          "written), one row alone %.1f, by chains of 10 %.1f\n",
          "", name, times.init * 1e6, bytes / times.init * 1e-9, times.perturb * 1e6, 2 * bytes / times.perturb * 1e-9,
          times.perturb_one * 1e6, times.chain * 1e6);
    }
  }

  Settings settings_;
  JsonLines lines_;
  double copy_ = 1;  // bytes a second
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--small") == 0) {
      settings.small = true;
    } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      settings.json = argv[++i];
    } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      settings.seconds = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr, "argument '%s' is unknown, expected --json FILE, --seconds S or --small\n", argv[i]);
      return 2;
    }
  }
  try {
    device::CheckAvailable();
    Bench(settings).Run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
