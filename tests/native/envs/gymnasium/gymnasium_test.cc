// The Gymnasium family without Python: its messages, and workers that are shell scripts with invalid replies.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "envs/env_pool.h"
#include "envs/gymnasium/process.h"
#include "envs/gymnasium/protocol.h"
#include "native/check.h"
#include "native/envs/gymnasium/workers.h"

using namespace neuroevo;

extern "C" void neuroevo_gymnasium_end_stuck(double seconds);

namespace {

// Return the peak memory of this process.
int64_t PeakKilobytes() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

}  // namespace

TEST(Messages) {
  const std::string message = MessageWriter(GymnasiumMessage::kReset).Number(uint32_t{7}).Text("grün").Finish();
  CHECK_EQ(message, std::string("\x0e\0\0\0\x02\x07\0\0\0\x05\0\0\0gr\xc3\xbcn", 18));
  MessageReader reader(Body(message));
  CHECK(reader.kind() == GymnasiumMessage::kReset);
  CHECK_EQ(reader.Number<uint32_t>("slot"), 7u);
  CHECK_THROWS(reader.Finish(), "9 bytes are left over");
  CHECK_EQ(reader.Text("text"), "grün");
  reader.Finish();
  CHECK_THROWS(reader.Number<uint8_t>("more"), "more takes 1 bytes, 0 are left");
  CHECK_THROWS(MessageReader(std::string_view()), "kind takes 1 bytes, 0 are left");
}

TEST(Specification) {
  const GymnasiumSpec read = ReadDescription(Description(false, 2));
  CHECK(read.spec.observation_dtype == DType::kUint8);
  CHECK_EQ(read.spec.observation_shape, (std::vector<int64_t>{2, 3}));
  CHECK(!read.spec.discrete());
  CHECK_EQ(read.spec.num_actions, 2);
  CHECK_EQ(read.spec.action_low, (std::vector<float>{-1, -1}));
  CHECK_EQ(read.spec.action_high, (std::vector<float>{2, 2}));
  CHECK_EQ(read.max_steps, 9);
  CHECK_EQ(read.spec.render_shape, (std::vector<int64_t>{1, 2, 3}));
  CHECK(ReadDescription(Description()).spec.discrete());
}

TEST(MalformedSpecifications) {
  CHECK_THROWS(ReadDescription(Description(true, 4, 3)), "version 3, expected 2");
  CHECK_THROWS(ReadDescription(Description(true, 0)), "number of actions 0, expected 1 to");
  CHECK_THROWS(ReadDescription(Description(true, std::numeric_limits<int64_t>::max())), "number of actions 9223");
  CHECK_THROWS(ReadDescription(Result(1)), "kind 6, expected 5");
  const auto changed = [](size_t at, auto value) {
    std::string message = Description();
    std::memcpy(message.data() + at, &value, sizeof(value));
    return message;
  };
  CHECK_THROWS(ReadDescription(changed(9, uint8_t{3})), "observation dtype 3, expected 0, 1 or 2");
  CHECK_THROWS(ReadDescription(changed(10, uint32_t{0})), "observation rank 0, expected 1 to 8");
  CHECK_THROWS(ReadDescription(changed(10, uint32_t{9})), "observation rank 9, expected 1 to 8");
  CHECK_THROWS(ReadDescription(changed(14, int64_t{0})), "observation dimension 0, expected 1 to");
  CHECK_THROWS(ReadDescription(changed(14, int64_t{1} << 62)), "observation dimension 4611686018427387904, expected");
  CHECK_THROWS(ReadDescription(changed(14, int64_t{1} << 26)), "observation dimension 3, expected 1 to 1");
  CHECK_THROWS(ReadDescription(changed(39, int64_t{-1})), "step limit -1, expected 0 or more");
  CHECK_THROWS(ReadDescription(changed(47, uint32_t{9000})), "screen of 9000x2, expected at most 8192");
}

// Truncated or extended messages are detected at every position, and nothing out of bounds is read.
TEST(MessagesOfAnotherLength) {
  const std::string error = MessageWriter(GymnasiumMessage::kError).Text("E").Text("T").Finish();
  for (const std::string& whole : {Description(), Description(false, 3), Result(2), Screen(), error}) {
    for (size_t length = 0; length <= Body(whole).size() + 1; ++length) {
      if (length == Body(whole).size()) continue;
      const std::string exact = (whole + "x").substr(sizeof(uint32_t), length);
      const std::vector<char> cut(exact.begin(), exact.end());  // where a sanitizer sees its end
      char observation[6];
      std::vector<double> none;
      const auto read = [&] {
        MessageReader reader(std::string_view(cut.data(), cut.size()));
        if (reader.kind() == GymnasiumMessage::kSpec) ReadGymnasiumSpec(&reader);
        if (reader.kind() == GymnasiumMessage::kResult) ReadGymnasiumResult(&reader, &none, 6, observation);
        uint8_t screen[6];
        if (reader.kind() == GymnasiumMessage::kScreen) ReadGymnasiumScreen(&reader, 6, screen);
        if (reader.kind() == GymnasiumMessage::kError) ReadGymnasiumError(&reader);
      };
      CHECK_THROWS(read(), "malformed message of a gymnasium worker");
    }
  }
}

TEST(AnEpisode) {
  auto pool = Pool(Start() + Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.5, false, "ghijkl")) +
                   Hear(kStep) + Say(Result(2, true, "mnopqr")) + Hear(kRender) + Say(Screen()));
  pool->Reset({0}, {7}, {0});
  char seen[7] = "";
  pool->Observe({0}, seen);
  CHECK_EQ(std::string(seen), "abcdef");
  double reward;
  bool done;
  const int32_t action = 3;
  pool->Step({0}, &action, &reward, &done);
  pool->Observe({0}, seen);
  CHECK_EQ(std::string(seen), "ghijkl");
  CHECK_EQ(reward, 0.5);
  CHECK(!done);
  pool->Step({0}, &action, &reward, &done);
  CHECK_EQ(reward, 2.0);
  CHECK(done);
  uint8_t screen[6];
  pool->Render({0}, screen);
  CHECK_EQ(std::string(screen, screen + 6), "ABCDEF");
}

// NaN after a reset, which need not have an info; the numbers come before the observation.
TEST(ABehavior) {
  const auto result = [](double first, double second, const std::string& observation) {
    const double numbers[] = {first, second};
    return Result(1, false, std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)) + observation);
  };
  const std::string rest = Say(result(NAN, NAN, "abcdef")) + Hear(kStep) + Say(result(3, -4, "ghijkl")) + Hear(kStep) +
                           Say(result(5, INFINITY, "mnopqr"));
  auto pool = Pool(Hear(kHello + 3) + Say(Description()) + Hear(kReset) + rest, 1, "60", "0", "a\nb");
  CHECK(pool->spec().behavior_shape == std::vector<int64_t>{2});
  pool->Reset({0}, {7}, {0});
  CHECK_EQ(pool->Failure(0), "");
  double reward, behavior[2];
  bool done;
  const int32_t action = 0;
  pool->Step({0}, &action, &reward, &done);
  pool->Behavior({0}, behavior);
  CHECK_EQ(behavior[0], 3.0);
  CHECK_EQ(behavior[1], -4.0);
  char seen[7] = "";
  pool->Observe({0}, seen);
  CHECK_EQ(std::string(seen), "ghijkl");
  pool->Step({0}, &action, &reward, &done);
  CHECK(done);
  CHECK_EQ(pool->Failure(0), "the behavior has a number that is not finite at step 2");
}

TEST(ARewardThatIsNotFinite) {
  auto pool = Pool(Start() + Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(-INFINITY)));
  pool->Reset({0}, {7}, {0});
  double reward;
  bool done;
  const int32_t action = 0;
  pool->Step({0}, &action, &reward, &done);
  CHECK_EQ(reward, 0.0);
  CHECK(done);
  CHECK_EQ(pool->Failure(0), "the reward is -inf at step 1");
}

TEST(BadStarts) {
  CHECK_THROWS(Pool("exit 3"), "gymnasium environment 'Toy', start (worker 0, process ");
  CHECK_THROWS(Pool("exit 3"), "): the worker ended with exit code 3");
  CHECK_THROWS(Pool("kill -15 $$"), "): the worker was killed by signal 15");
  CHECK_THROWS(Pool(Say(Result(1))), "kind 6, expected 5");
  CHECK_THROWS(Pool(Say(Description(true, 4, 77))), "version 77, expected 2");
  CHECK_THROWS(Pool(Say(std::string(4, '\0'))), "it sent a message of 0 bytes");
  CHECK_THROWS(Pool(Say(std::string(4, '\xff')) + "exec sleep 60"), "it sent a message of 4294967295 bytes");
  CHECK_THROWS(Pool(Say(Description().substr(0, 20)) + "exit 0"), "the worker ended with exit code 0");
  CHECK_THROWS(Pool(Say(Description() + Description())), "it sent more than one answer");
  CHECK_THROWS(Pool(Say(MessageWriter(GymnasiumMessage::kError).Text("E: x").Text("").Finish())), "): E: x");
  const std::shared_ptr<ThreadPool> threads = std::make_shared<ThreadPool>(1);
  const auto make = [&](const EnvOptions& options) { EnvPool("gymnasium", options, 1, threads); };
  CHECK_THROWS(make({{"command", "/no/such/program"}, {"id", "Toy"}}), "cannot start '/no/such/program': No such file");
  CHECK_THROWS(make({{"command", "/bin/sh"}}), "gymnasium needs the option id=ENVIRONMENT");
  CHECK_THROWS(make({{"id", "Toy"}}), "the command of a gymnasium worker is empty");
  CHECK_THROWS(make({{"id", "Toy"}, {"workers", "0"}}), "gymnasium option workers is '0', expected an integer in");
  CHECK_THROWS(make({{"id", "Toy"}, {"timeout", "0"}}), "gymnasium option timeout is '0', expected a number in");
  CHECK_THROWS(make({{"id", "Toy"}, {"wrkers", "1"}}), "gymnasium has no option 'wrkers'");
}

TEST(BadAnswers) {
  const std::vector<uint64_t> seeds = {7};
  const auto reset = [&](const std::string& answer, const std::string& timeout = "60") {
    auto pool = Pool(Start() + Hear(kReset) + answer, 1, timeout);
    try {
      pool->Reset({0}, seeds, {0});
    } catch (const Error& first) {
      try {
        pool->Reset({0}, seeds, {0});  // and so does every later call
      } catch (const Error& second) {
        CHECK_EQ(std::string(first.what()), second.what());
      }
      throw;
    }
  };
  CHECK_THROWS(reset("exit 3"), "reset of slot 0 (worker 0, process ");
  CHECK_THROWS(reset("exit 3"), "the worker ended with exit code 3");
  CHECK_THROWS(reset(Say(Result(0, false, "abcde"))), "observation takes 6 bytes, 5 are left");
  CHECK_THROWS(reset(Say(Result(0, false, "abcdefg"))), "1 bytes are left over");
  CHECK_THROWS(reset(Say(Description())), "kind 5, expected 6");
  CHECK_THROWS(reset("exec sleep 60", "0.1"), "no answer within 0.1 s");
  CHECK_THROWS(reset("exec 0>&-; exec sleep 60"), "the worker closed its connection");
}

// A length is only announced: memory is taken as its bytes come, of which there may be many.
TEST(LongAnswers) {
  const auto most = static_cast<uint32_t>(kMaxMessageBytes);
  const std::string announced(reinterpret_cast<const char*>(&most), sizeof(most));
  const int64_t before = PeakKilobytes();
  CHECK_THROWS(Pool(Say(announced + "\x08") + "exit 3"), "the worker ended with exit code 3");
  CHECK(PeakKilobytes() - before < 100'000);

  const size_t length = 300'000;
  std::string error = MessageWriter(GymnasiumMessage::kError).Text(std::string(length, 'x')).Text("").Finish();
  error.resize(error.find('x'));
  const std::string rest = Concat("{ head -c ", length, " /dev/zero | tr '\\0' x >&3; } 3>&0; ");
  CHECK_THROWS(Pool(Hear(kHello) + Say(error) + rest + Say(std::string(4, '\0'))), "): " + std::string(length, 'x'));
}

// A process left behind by a worker may hold the worker's end of the socket without sending anything.
TEST(AWorkerThatLeavesAChild) {
  auto pool = Pool(Start() + Hear(kReset) + "exec 7<&0; sleep 20 >/dev/null 2>&1 & exit 3", 1, "10");
  CHECK_THROWS(pool->Reset({0}, {7}, {0}), "the worker ended with exit code 3");
  auto at_once =
      Pool(Start() + Hear(kReset) + "exec 7<&0; sleep 20 >/dev/null 2>&1 & " + Say(Result(0)) + "exit 3", 1, "10");
  at_once->Reset({0}, {7}, {0});  // what it had said before counts
}

// The first worker of a place and its replacements run different scripts.
class Shift {
 public:
  explicit Shift(const std::string& name) : folder_("/tmp/neuroevo_" + name + "_" + std::to_string(getpid())) {}
  ~Shift() { rmdir(folder_.c_str()); }
  std::string Script(const std::string& first, const std::string& others) const {
    return Start() + "if mkdir " + folder_ + " 2>/dev/null; then " + first + "else " + others + "fi; " +
           Hear(1);  // until it is asked to exit
  }

 private:
  std::string folder_;
};

TEST(AnEpisodeIsPlayedAgain) {
  const Shift shift("again");
  const std::string begin = Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.5, false, "ghijkl"));
  auto pool =
      Pool(shift.Script(begin + "kill -9 $$; ", begin + Hear(kStep) + Say(Result(2, true, "mnopqr"))), 1, "60", "1");
  pool->Reset({0}, {7}, {0});
  double reward;
  bool done;
  const int32_t action = 3;
  pool->Step({0}, &action, &reward, &done);
  CHECK_EQ(reward, 0.5);
  pool->Step({0}, &action, &reward, &done);
  CHECK_EQ(reward, 2.0);
  CHECK(done);
  CHECK_EQ(pool->Failure(0), "");
  CHECK_EQ(pool->TakeEnds({0}).at(0).retries, 1);
}

TEST(AnEpisodeThatGoesAnotherWay) {
  const std::vector<std::string> others = {
      Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.5, true)),
      Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.25)),
      Hear(kReset) + Say(Result(0, false, "bbbbbb")) + Hear(kStep) + Say(Result(0.5)),
  };
  for (const std::string& other : others) {
    const Shift shift("another_way");
    auto pool = Pool(shift.Script(Hear(kReset) + Say(Result(0)) + Hear(kStep) + Say(Result(0.5)) + "exit 3; ", other),
                     1, "60", "1");
    pool->Reset({0}, {7}, {0});
    double reward;
    bool done;
    const int32_t action = 3;
    pool->Step({0}, &action, &reward, &done);
    CHECK(!done);
    pool->Step({0}, &action, &reward, &done);
    CHECK_EQ(reward, 0.0);
    CHECK(done);
    CHECK(pool->Failure(0).find("with the same 1 actions gave different results") != std::string::npos);
  }
}

// All workers must have the same environment description, otherwise an observation might not fit.
TEST(WorkersThatDisagree) {
  const std::string name = "/tmp/neuroevo_gymnasium_test_" + std::to_string(getpid());
  auto pool = Pool("if mkdir " + name + " 2>/dev/null; then " + Start() + "else " + Hear(kHello) +
                       Say(Description(true, 5)) + "fi; exec sleep 60",
                   2);
  CHECK_THROWS(pool->Reset({1}, {0}, {0}), "slot 1 (worker 1, process ");
  CHECK_THROWS(pool->Reset({1}, {0}, {0}), "its environment's spaces differ from the first worker's");
  rmdir(name.c_str());
}

TEST(ProcessesEnd) {
  pid_t id;
  {
    ChildProcess child({"/bin/sleep", "60"}, 0);
    id = child.id();
    CHECK_EQ(kill(id, 0), 0);
    CHECK(!child.AwaitEnd(std::chrono::steady_clock::now()));
    CHECK_EQ(child.HowItEnded(), "");
  }
  CHECK(kill(id, 0) == -1 && errno == ESRCH);  // nor is it a zombie
  const auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ChildProcess ended({"/bin/sh", "-c", "exit 9"}, 0);
  CHECK(ended.AwaitEnd(soon));
  CHECK_EQ(ended.HowItEnded(), "ended with exit code 9");
  CHECK(kill(ended.id(), 0) == -1 && errno == ESRCH);
  ended.Kill();
  CHECK(ended.AwaitEnd(soon));
  CHECK_EQ(ended.HowItEnded(), "ended with exit code 9");
}

// A fork inherits the socket and would receive the replies for which this process waits.
TEST(ForksMayNotAsk) {
  auto pool = Pool(Start() + Hear(kReset) + Say(Result(0)) + "exec sleep 60");
  const pid_t fork_id = fork();
  if (fork_id == 0) {
    neuroevo_gymnasium_end_stuck(0);  // nor kill the other's worker
    try {
      pool->Reset({0}, {7}, {0});
    } catch (const Error& error) {
      _exit(std::strstr(error.what(), "the process that this one was forked from") ? 3 : 4);
    }
    _exit(5);
  }
  int status = 0;
  CHECK_EQ(waitpid(fork_id, &status, 0), fork_id);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 3);
  pool->Reset({0}, {7}, {0});
}

// Waiting callers get an error. Every number of seconds is safe.
TEST(StuckWorkersAreEnded) {
  auto pool = Pool(Start() + Hear(kReset) + "exec sleep 60", 1, "60", "5");  // retries must not replay after this
  std::string error;
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    try {
      pool->Reset({0}, {7}, {0});
    } catch (const Error& thrown) {
      error = thrown.what();
    }
    over = true;
  });
  while (!over) {
    neuroevo_gymnasium_end_stuck(INFINITY);
    neuroevo_gymnasium_end_stuck(NAN);  // as 0
  }
  waiting.join();
  CHECK(error.find("the worker was killed by signal 9") != std::string::npos);
}
