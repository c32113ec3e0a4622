// The options of the Atari family: what they change in the specification, replays under each, and every bad value.
// Parity with ale-py and Gymnasium is tested from Python.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "native/check.h"
#include "native/envs/atari/games.h"

using namespace neuroevo;

namespace {

const EnvOptions kEverything = {{"protocol", "gymnasium"},
                                {"repeat_action_probability", "0.25"},
                                {"full_action_space", "true"},
                                {"mode", "1"},
                                {"difficulty", "3"},
                                {"frame_skip", "3"},
                                {"noop_max", "7"},
                                {"terminal_on_life_loss", "true"}};

std::vector<uint8_t> Render(Games* games, const std::vector<int64_t>& slots) {
  std::vector<uint8_t> out(slots.size() * games->pool.spec().render_bytes());
  games->pool.Render(slots, out.data());
  return out;
}

std::vector<uint8_t> Behavior(Games* games, const std::vector<int64_t>& slots) {
  std::vector<uint8_t> out(slots.size() * games->pool.spec().behavior_bytes());
  games->pool.Behavior(slots, out.data());
  return out;
}

void CheckBad(const std::string& game, const EnvOptions& options, const std::string& message) {
  CHECK_THROWS(Games(game, 1, 1, options), message);
}

}  // namespace

TEST(TheSpecificationFollowsTheOptions) {
  const EnvSpec plain = Games("pong", 1, 1).pool.spec();
  CHECK_EQ(plain.num_actions, 6);
  CHECK_EQ(plain.frame_skip, 4);
  CHECK_EQ(plain.behavior_dtype, DType::kUint8);
  CHECK_EQ(plain.behavior_shape, (std::vector<int64_t>{128}));
  CHECK_EQ(plain.render_shape, (std::vector<int64_t>{210, 160, 3}));
  const EnvSpec other = Games("pong", 1, 1, kEverything).pool.spec();
  CHECK_EQ(other.num_actions, 18);
  CHECK_EQ(other.frame_skip, 3);
  CHECK_EQ(other.observation_shape, (std::vector<int64_t>{84, 84, 4}));
  CHECK_EQ(Games("king_kong", 1, 1).pool.spec().render_shape, (std::vector<int64_t>{250, 160, 3}));
  CHECK_EQ(Games("pong", 1, 1, {{"frame_skip", "1000"}}).pool.spec().frame_skip, 1000);
}

TEST(ReplaysAreIdenticalUnderOptions) {
  const EnvOptions gymnasium = {{"protocol", "gymnasium"}}, sticky = {{"repeat_action_probability", "0.5"}};
  for (const EnvOptions& options : {kEverything, gymnasium, sticky}) {
    Games games("pong", 2, 2, options);
    const Episode first = games.Play({0}, {11}, 40)[0];
    games.Play({0, 1}, {3, 4}, 25);  // other episodes in between
    CHECK(games.Play({0}, {11}, 40)[0] == first);
    CHECK(games.Play({1}, {11}, 40)[0] == first);
    CHECK(Games("pong", 1, 1, options).Play({0}, {11}, 40)[0] == first);
  }
}

TEST(StickyActionsChangeTheEpisode) {
  const auto play = [](const std::string& probability) {
    return Games("breakout", 1, 1, {{"repeat_action_probability", probability}}).Play({0}, {11}, 60)[0].observations;
  };
  CHECK(play("0.5") != play("0"));
  CHECK(play("0.5") != play("0.25"));
  CHECK_EQ(play("0"), play("0.0"));
}

TEST(GymnasiumRepeatsTheFirstFrame) {
  Games games("breakout", 1, 1, {{"protocol", "gymnasium"}});
  for (uint64_t seed : {1, 2}) {
    games.Reset({0}, {seed});
    const std::vector<uint8_t> seen = games.Observe({0});
    for (int p = 0; p < kFramePixels; ++p) {
      for (int i = 1; i < 4; ++i) CHECK_EQ(seen[p * 4 + i], seen[p * 4]);
    }
    games.Play({0}, {3}, 10);
  }
}

TEST(ScreensAndMemoryAreOfTheirSlots) {
  Games games("pong", 3, 2);
  games.Play({0, 1, 2}, {1, 2, 3}, 20);
  const std::vector<uint8_t> screens = Render(&games, {2, 0, 1}), memory = Behavior(&games, {2, 0, 1});
  std::vector<uint8_t> one_by_one, bytes;
  for (int64_t slot : {2, 0, 1}) {
    for (uint8_t byte : Render(&games, {slot})) one_by_one.push_back(byte);
    for (uint8_t byte : Behavior(&games, {slot})) bytes.push_back(byte);
  }
  CHECK(screens == one_by_one);
  CHECK_EQ(memory, bytes);
}

TEST(BadValues) {
  CheckBad("pong", {{"protocol", "Uber"}}, "atari option protocol is 'Uber', expected one of: uber, gymnasium");
  CheckBad("pong", {{"repeat_action_probability", "1.5"}},
           "atari option repeat_action_probability is '1.5', expected a number in [0, 1]");
  CheckBad("pong", {{"full_action_space", "1"}}, "atari option full_action_space is '1', expected true or false");
  CheckBad("pong", {{"terminal_on_life_loss", ""}}, "atari option terminal_on_life_loss is '', expected true or false");
  CheckBad("pong", {{"frame_skip", "0"}}, "atari option frame_skip is '0', expected an integer in [1, 1000]");
  CheckBad("pong", {{"frame_skip", "1001"}}, "atari option frame_skip is '1001', expected an integer in [1, 1000]");
  CheckBad("pong", {{"noop_max", "-1"}}, "atari option noop_max is '-1', expected an integer in [0, 1000]");
  CheckBad("pong", {{"mode", "-1"}}, "atari option mode is '-1', expected an integer in [0, 2147483647]");
  CheckBad("pong", {{"difficulty", "2147483648"}}, "atari option difficulty is '2147483648', expected an integer");
  CheckBad("pong", {{"mode", "2"}}, "atari option mode is 2, which pong does not support; expected one of: 0, 1");
  CheckBad("pong", {{"difficulty", "4"}},
           "atari option difficulty is 4, which pong does not support; expected one of: 0, 1, 2, 3");
  CheckBad("frostbite", {{"mode", "2147483647"}}, "mode is 2147483647, which frostbite does not support");
  CheckBad("pong", {{"sticky", "0.25"}},
           "atari has no option 'sticky', expected one of: rom, protocol, repeat_action_probability, "
           "full_action_space, mode, difficulty, frame_skip, noop_max, terminal_on_life_loss");
}
